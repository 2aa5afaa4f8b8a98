//! The search for a worker, in the order of docs/hosts.md.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::VERSION;
use crate::builder::WorkerBuilder;
use crate::error::{Error, Result};

/// uvx fetches the worker's packages at its first start.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// Where a worker was found.
#[derive(Debug, PartialEq)]
pub(crate) struct Place {
    pub command: Vec<String>,
    pub host_watch: bool,
    pub start_timeout: Option<Duration>,
}

impl Place {
    fn program(program: impl Into<String>) -> Self {
        Self { command: vec![program.into(), "worker".into()], host_watch: true, start_timeout: None }
    }

    fn command(command: Vec<String>) -> Self {
        Self { command, host_watch: false, start_timeout: None }
    }
}

/// Return the first worker.
pub(crate) fn first_worker(builder: &WorkerBuilder) -> Result<Place> {
    if !builder.command.is_empty() {
        return Ok(Place::command(builder.command.clone()));
    }
    if let Some(program) = bundled_program(env::current_exe().ok()) {
        return Ok(Place::program(program));
    }
    if let Some(value) = env::var("LMWIRE_WORKER").ok().filter(|value| !value.is_empty()) {
        return named_worker(&value);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).collect();
    on_path(&folders, builder.uvx).ok_or(Error::WorkerNotFound { uvx: builder.uvx })
}

/// Return the worker of the folders of PATH. Empty and relative ones mean the working directory, and are skipped.
fn on_path(folders: &[PathBuf], uvx: bool) -> Option<Place> {
    let absolute = || folders.iter().filter(|folder| folder.is_absolute());
    let find = |name| absolute().map(|folder| folder.join(name)).find(|program| is_executable(program));
    if let Some(program) = find("lmwire") {
        return Some(Place::program(program.to_string_lossy()));
    }
    let program = uvx.then(|| find("uvx"))??.to_string_lossy().into_owned();
    let command = [program, "--from".into(), packages(), "lmwire".into(), "worker".into()];
    Some(Place { command: command.into(), host_watch: true, start_timeout: Some(DOWNLOAD_TIMEOUT) })
}

fn is_executable(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Return what uvx installs for this machine's models.
fn packages() -> String {
    let extra = if cfg!(target_os = "macos") { "worker" } else { "cpu" };
    format!("lmwire[{extra}]=={VERSION}")
}

/// Return the program in the folder that an app ships.
fn bundled_program(executable: Option<PathBuf>) -> Option<String> {
    let executable = executable.filter(|path| path.is_absolute())?;
    let executable = executable.canonicalize().unwrap_or(executable);
    let folder = executable.parent()?;
    let mut folders = vec![folder.to_owned()];
    if cfg!(target_os = "macos") {
        folders.push(folder.join("../Resources"));
    }
    let mut programs = folders.iter().map(|folder| folder.join("lmwire/lmwire"));
    programs.find(|program| program.is_file()).map(|program| program.to_string_lossy().into_owned())
}

/// Return the worker that $LMWIRE_WORKER names: a program, or a whole command as a JSON list.
fn named_worker(value: &str) -> Result<Place> {
    if !value.starts_with('[') {
        return Ok(Place::program(value));
    }
    match serde_json::from_str::<Vec<String>>(value) {
        Ok(command) if !command.is_empty() => Ok(Place::command(command)),
        _ => Err(Error::Start {
            command: vec![value.into()],
            reason: "$LMWIRE_WORKER must name a program, or be a JSON list of strings: a command".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Return a new folder with executable files.
    fn folder(name: &str, programs: &[&str]) -> PathBuf {
        let folder = env::temp_dir().join(format!("lmwire-rust-find-{}-{name}", std::process::id()));
        for program in programs {
            let program = folder.join(program);
            fs::create_dir_all(program.parent().unwrap()).unwrap();
            fs::write(&program, "").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    #[test]
    fn a_command_comes_first_and_is_not_watched() {
        let builder = WorkerBuilder::default().command(["ssh", "gpu-box"]);
        let place = first_worker(&builder).unwrap();
        assert_eq!(place, Place::command(vec!["ssh".into(), "gpu-box".into()]));
    }

    #[test]
    fn a_bundle_lies_beside_the_real_file_of_the_program() {
        let app = folder("bundle", &["app", "lmwire/lmwire"]);
        let link = app.join("lmwire/link");
        std::os::unix::fs::symlink(app.join("app"), &link).unwrap();
        let found = bundled_program(Some(link)).unwrap();
        assert!(found.ends_with("lmwire/lmwire"), "{found}");
        assert_eq!(bundled_program(Some(app.join("lmwire/lmwire"))), None);
        assert_eq!(bundled_program(Some("app".into())), None);
        fs::remove_dir_all(app).unwrap();
    }

    #[test]
    fn the_variable_names_a_program_or_a_command() {
        assert_eq!(named_worker("/opt/lmwire").unwrap(), Place::program("/opt/lmwire"));
        assert_eq!(named_worker(r#"["a","b"]"#).unwrap(), Place::command(vec!["a".into(), "b".into()]));
        for wrong in ["[]", "[1]", "[\"a\""] {
            assert!(named_worker(wrong).unwrap_err().to_string().contains("JSON list of strings"));
        }
    }

    #[test]
    fn path_has_lmwire_before_uvx_which_runs_only_if_the_host_allows_it() {
        let both = folder("both", &["uvx", "lmwire"]);
        let uvx = folder("uvx", &["uvx"]);
        let place = on_path(&[uvx.clone(), both.clone()], true).unwrap();
        assert_eq!(place, Place::program(both.join("lmwire").to_string_lossy()));
        let place = on_path(&[both.join("none"), uvx.clone()], true).unwrap();
        assert_eq!(place.command[1..], ["--from", &packages(), "lmwire", "worker"]);
        assert_eq!(place.start_timeout, Some(DOWNLOAD_TIMEOUT));
        assert_eq!(on_path(&[both.join("none")], true), None);
        assert_eq!(on_path(std::slice::from_ref(&uvx), WorkerBuilder::default().uvx), None);
        fs::remove_dir_all(both).unwrap();
        fs::remove_dir_all(uvx).unwrap();
    }

    #[test]
    fn without_a_worker_the_error_says_what_to_do() {
        let start = "no worker found: put lmwire on PATH, name a worker in $LMWIRE_WORKER, or ";
        for (uvx, end) in [(false, "allow a download with the option uvx"), (true, "install uv for the option uvx")] {
            assert_eq!(Error::WorkerNotFound { uvx }.to_string(), format!("{start}{end}"));
        }
    }
}
