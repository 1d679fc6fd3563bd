//! Builds the component from source. The build script includes this file too.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fmt, io};

const TARGET: &str = "wasm32-wasip2";

/// A profile of its own, so that tests can run in the usual ones.
const PROFILE: &str = "component";

/// Why the component could not be built.
#[derive(Debug)]
pub enum BuildError {
    /// The program could not be started.
    NotStarted(&'static str, io::Error),
    /// The program failed; carries what it wrote.
    Failed(&'static str, String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(program, err) => write!(f, "`{program}` could not be started: {err}"),
            Self::Failed(program, output) => {
                write!(
                    f,
                    "`{program}` failed while building the component:\n{output}"
                )
            }
        }
    }
}

impl std::error::Error for BuildError {}

/// The component inside a packaged library, which has no source to build it from.
pub(crate) const PACKAGED: &str = "component/decant.wasm";

/// The workspace around the library at `package`; `None` where the library is packaged.
pub(crate) fn workspace(package: &Path) -> Option<&Path> {
    let root = package.parent()?;
    root.join("src/component.rs").is_file().then_some(root)
}

/// Builds the component of the workspace at `root` and returns where it is.
///
/// Cargo decides whether there is anything to do, so the result is never older than the source. The
/// target folder is not the one of the cargo that may be waiting for this, so there is no lock to
/// wait for.
///
/// # Errors
/// The wasm target cannot be installed, or the source does not compile.
pub(crate) fn build(root: &Path, target_dir: &Path) -> Result<PathBuf, BuildError> {
    ensure_target()?;
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    cargo
        .args(["build", "--package", "decant", "--lib", "--target", TARGET])
        .args(["--profile", PROFILE])
        .arg("--manifest-path")
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target_dir);
    run(&mut cargo, "cargo build")?;
    Ok(target_dir.join(TARGET).join(PROFILE).join("decant.wasm"))
}

/// Installs the standard library of the wasm target where it is missing.
fn ensure_target() -> Result<(), BuildError> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", TARGET]);
    let libdir = run(&mut rustc, "rustc")?;
    if Path::new(libdir.trim()).is_dir() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]);
    run(&mut rustup, "rustup target add wasm32-wasip2").map(drop)
}

/// Runs a program without the settings of the cargo around it: flags, wrappers, profiles and
/// features of the host would change the component.
fn run(command: &mut Command, name: &'static str) -> Result<String, BuildError> {
    for (variable, _) in env::vars_os() {
        if variable.to_str().is_some_and(is_about_the_host) {
            command.env_remove(variable);
        }
    }
    let output = command
        .output()
        .map_err(|err| BuildError::NotStarted(name, err))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(BuildError::Failed(name, stderr))
    }
}

fn is_about_the_host(variable: &str) -> bool {
    const NAMES: [&str; 9] = [
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_INCREMENTAL",
        "CARGO_TARGET_DIR",
        "CLIPPY_ARGS",
        "RUSTC",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_WRAPPER",
        "RUSTDOCFLAGS",
        "RUSTFLAGS",
    ];
    const PREFIXES: [&str; 5] = [
        "CARGO_BUILD_",
        "CARGO_CFG_",
        "CARGO_FEATURE_",
        "CARGO_PROFILE_",
        "CARGO_TARGET_WASM32",
    ];
    NAMES.contains(&variable) || PREFIXES.iter().any(|prefix| variable.starts_with(prefix))
}
