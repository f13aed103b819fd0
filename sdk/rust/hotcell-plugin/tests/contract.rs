//! The contract that this crate carries is the one of the repository it lies in.

use std::path::Path;

#[test]
fn the_contract_is_the_repositorys() -> Result<(), Box<dyn std::error::Error>> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("wit");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../wit");
    if !repository.is_dir() {
        // Outside of the repository, as a downloaded crate, there is nothing to compare with.
        return Ok(());
    }
    let names = |folder: &Path| -> Result<Vec<_>, std::io::Error> {
        let mut names = std::fs::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<Result<Vec<_>, std::io::Error>>()?;
        names.sort();
        Ok(names)
    };
    assert_eq!(names(&own)?, names(&repository)?, "copy the files of `wit/` into `sdk/rust/hotcell-plugin/wit/`");
    for name in names(&own)? {
        let same = std::fs::read(own.join(&name))? == std::fs::read(repository.join(&name))?;
        assert!(same, "`sdk/rust/hotcell-plugin/wit/{0}` differs from `wit/{0}`: copy it", name.display());
    }
    Ok(())
}
