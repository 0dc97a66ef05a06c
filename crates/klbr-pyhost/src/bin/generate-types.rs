//! Writes the Python types of questions and answers where they are committed.

fn main() -> std::io::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/python/klbr/_types.py");
    std::fs::write(path, klbr_pyhost::python_types())
}
