//! The command `decant`; see [`decant_cli::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = std::io::stdout().lock();
    let exit = decant_cli::cli::run(std::env::args_os(), &mut out, &mut std::io::stderr());
    ExitCode::from(exit.code())
}
