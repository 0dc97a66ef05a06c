//! Prints the definitions of files: kind, path, lines.

#![allow(clippy::print_stdout, reason = "an example shows")]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in std::env::args().skip(1) {
        let source = std::fs::read(&file)?;
        let extraction = klbr_codeintel::extract_symbols(Some(file.as_ref()), source, None)?;
        println!("{file}: {}, {:?}", extraction.language.name, extraction.status);
        for symbol in extraction.definitions() {
            println!(
                "{:>5} {:<16} {}{}",
                symbol.name_range.start_line,
                symbol.kind,
                symbol.name_path,
                if symbol.degraded { " (degraded)" } else { "" }
            );
        }
    }
    Ok(())
}
