//! Compiled components on disk, so that a process does not compile what another one has compiled.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use sha1::{Digest, Sha1};
use wasmtime::component::Component;
use wasmtime::{Engine, Precompiled};

/// How many compiled components are kept: those of a few versions that are in use side by side.
const MAX_FILES: usize = 8;

/// Length of the checksum that a cache file begins with.
const CHECKSUM_BYTES: usize = 20;

/// Where compiled components are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// In the user's cache folder. Where there is none, nothing is kept.
    #[default]
    User,
    /// In this folder. It holds native code that will be run: nobody else may write to it.
    Folder(PathBuf),
    /// Nowhere: each process compiles anew.
    Off,
}

impl Cache {
    fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::User => user_cache().map(|cache| cache.join("decant")),
            Self::Folder(folder) => Some(folder.clone()),
            Self::Off => None,
        }
    }
}

fn user_cache() -> Option<PathBuf> {
    let folder = |variable: &str| {
        env::var_os(variable)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        Some(folder("HOME")?.join("Library/Caches"))
    } else {
        folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))
    }
}

/// Compiles a component, or takes it from the cache. Trouble with the cache is no error: a file that
/// is missing, damaged or of another version means compiling, and a file that cannot be written
/// means compiling again next time.
pub(crate) fn compile(engine: &Engine, wasm: &[u8], cache: &Cache) -> wasmtime::Result<Component> {
    let Some(file) = cache
        .folder()
        .map(|folder| folder.join(file_name(engine, wasm)))
    else {
        return Component::new(engine, wasm);
    };
    if let Some(component) = load(engine, &file) {
        return Ok(component);
    }
    let component = Component::new(engine, wasm)?;
    if let Ok(compiled) = component.serialize() {
        let _ = store(&file, &compiled).and_then(|()| discard_oldest(&file));
    }
    Ok(component)
}

/// Names the component and everything that the compiled form depends on: wasmtime's version and
/// settings, and the processor.
fn file_name(engine: &Engine, wasm: &[u8]) -> String {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    std::hash::Hash::hash(&engine.precompile_compatibility_hash(), &mut hasher);
    let compatibility = std::hash::Hasher::finish(&hasher);
    format!("{}-{compatibility:016x}.cwasm", hex(&Sha1::digest(wasm)))
}

#[expect(
    unsafe_code,
    reason = "wasmtime cannot check native code; the checksum and the folder do"
)]
fn load(engine: &Engine, file: &Path) -> Option<Component> {
    let bytes = fs::read(file).ok()?;
    let (checksum, compiled) = bytes.split_at_checked(CHECKSUM_BYTES)?;
    let intact = Sha1::digest(compiled).as_slice() == checksum;
    if !intact || Engine::detect_precompiled(compiled) != Some(Precompiled::Component) {
        return None;
    }
    // SAFETY: these are the bytes that `store` got from `serialize`, as their checksum shows, in a
    // folder that only this user can write to.
    unsafe { Component::deserialize(engine, compiled) }.ok()
}

/// Other processes see the whole file or none.
fn store(file: &Path, compiled: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    create_private(folder)?;
    let partial = file.with_extension(format!("{}.partial", process::id()));
    let mut bytes = Sha1::digest(compiled).to_vec();
    bytes.extend_from_slice(compiled);
    fs::write(&partial, bytes)?;
    fs::rename(&partial, file).inspect_err(|_| drop(fs::remove_file(&partial)))
}

/// Removes the files beside this one that were written longest ago.
fn discard_oldest(newest: &Path) -> std::io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(newest.parent().unwrap_or(Path::new(".")))? {
        let path = entry?.path();
        if path.extension() == newest.extension() && path != newest {
            files.push((fs::metadata(&path)?.modified()?, path));
        }
    }
    files.sort_unstable_by(|a, b| b.cmp(a));
    let mut old = files.into_iter().skip(MAX_FILES - 1);
    old.try_for_each(|(_, path)| fs::remove_file(path))
}

#[cfg(unix)]
fn create_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

#[cfg(not(unix))]
fn create_private(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// FNV-1a: the standard hasher may differ between two builds of this library.
struct Fnv(u64);

impl std::hash::Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest component: a header and nothing behind it.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn compiled_files(folder: &Path) -> Vec<PathBuf> {
        let files = fs::read_dir(folder).into_iter().flatten();
        files
            .map(|file| file.expect("a readable folder").path())
            .collect()
    }

    #[test]
    fn a_compiled_component_is_kept_and_a_damaged_file_is_passed_over() {
        let folder = env::temp_dir().join(format!("decant-cache-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        let cache = Cache::Folder(folder.join("inner"));
        let engine = Engine::default();
        compile(&engine, EMPTY, &cache).expect("compiles");
        let files = compiled_files(&folder.join("inner"));
        let [file] = files.as_slice() else {
            panic!("{files:?}");
        };
        assert!(load(&engine, file).is_some());

        let intact = fs::read(file).expect("a file");
        let mut flipped = intact.clone();
        flipped[CHECKSUM_BYTES + 100] ^= 1;
        for damaged in [&[][..], &intact[..10], &intact[..200], &flipped] {
            fs::write(file, damaged).expect("writable");
            assert!(load(&engine, file).is_none(), "{} bytes", damaged.len());
            compile(&engine, EMPTY, &cache).expect("compiles");
            assert_eq!(fs::read(file).expect("a file"), intact, "written anew");
        }
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn only_the_newest_are_kept() {
        let folder = env::temp_dir().join(format!("decant-cache-many-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        for number in 0..20 {
            let file = folder.join(format!("{number}.cwasm"));
            store(&file, b"compiled").expect("writable");
            discard_oldest(&file).expect("removable");
        }
        fs::write(folder.join("other"), "").expect("writable");
        assert_eq!(compiled_files(&folder).len(), MAX_FILES + 1);
        assert!(folder.join("19.cwasm").exists());
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn without_a_folder_the_component_is_compiled_each_time() {
        let engine = Engine::default();
        compile(&engine, EMPTY, &Cache::Off).expect("compiles");
        let nowhere = Cache::Folder(PathBuf::from("/dev/null/cache"));
        compile(&engine, EMPTY, &nowhere).expect("compiles");
    }

    #[test]
    fn other_settings_have_files_of_their_own() {
        let mut config = wasmtime::Config::new();
        config.consume_fuel(true);
        let metered = Engine::new(&config).expect("valid settings");
        let names = [&Engine::default(), &metered].map(|engine| file_name(engine, EMPTY));
        assert_ne!(names[0], names[1]);
        assert!(names[0].starts_with(&hex(&Sha1::digest(EMPTY))));
    }
}
