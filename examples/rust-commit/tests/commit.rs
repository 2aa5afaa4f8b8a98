//! The program in a new repository, with a mock worker and with the built-in model.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MESSAGE: &str = "Paint the door green\n\nRed was too loud.";

/// A git repository, and the environment of the programs that run in it.
struct Repository {
    folder: PathBuf,
    worker: String,
}

impl Repository {
    /// Make a repository with a staged file, whose worker answers with the message.
    fn new(name: &str, staged: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder); // of an earlier test that failed
        fs::create_dir_all(&folder).unwrap();
        let reply = r#"{"rules": [{"match": {"last_message": "green"}, "reply": {"text": "MESSAGE"}}]}"#;
        let scenario = folder.join("scenario.json");
        fs::write(&scenario, reply.replace("MESSAGE", &MESSAGE.replace('\n', "\\n"))).unwrap();
        let worker = format!(r#"["{}", "mock", "--scenario", "{}"]"#, lmwire(), scenario.display());
        let repository = Self { folder, worker };
        repository.git(&["init", "--quiet"]);
        if !staged.is_empty() {
            fs::write(repository.folder.join("door.txt"), staged).unwrap();
            repository.git(&["add", "door.txt"]);
        }
        repository
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            command.env(name, "ada@example.org");
        }
        command.args(arguments).current_dir(&self.folder).env("LMWIRE_WORKER", &self.worker).output().unwrap()
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = self.run("git", arguments);
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn rust_commit(&self, arguments: &[&str]) -> Output {
        self.run(env!("CARGO_BIN_EXE_rust-commit"), arguments)
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Return the program of this repository, or that of PATH.
fn lmwire() -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/lmwire");
    if program.exists() { program.to_string_lossy().into_owned() } else { "lmwire".into() }
}

#[test]
fn the_message_is_streamed_and_committed() {
    let repository = Repository::new("commit", "green\n");
    let output = repository.rust_commit(&["--model", "mock", "--commit"]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with(&format!("{MESSAGE}\n")), "{output:?}");
    assert_eq!(repository.git(&["log", "--format=%B"]).trim(), MESSAGE);
}

#[test]
fn the_built_in_model_writes_a_message_and_commits_nothing_unasked() {
    let mut repository = Repository::new("tiny", "green\n");
    repository.worker = lmwire();
    let output = repository.rust_commit(&["--model", "builtin:tiny"]);
    assert!(output.status.success(), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stdout).trim().is_empty(), "{output:?}");
    assert_eq!(repository.git(&["rev-list", "--all", "--count"]).trim(), "0");
}

#[test]
fn without_staged_changes_no_worker_starts() {
    let mut repository = Repository::new("unstaged", "");
    repository.worker = "/nonexistent".into();
    let output = repository.rust_commit(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("git add"), "{output:?}");
}
