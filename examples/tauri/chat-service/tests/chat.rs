//! The service with the real worker and its built-in model, and with a mock that stops, crashes and fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chat_service::{ChatEvent, ChatService, bundled_worker};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Longest time of a test. A test that passes waits for events, so it takes no longer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const FOREVER: &str = r#"{"match": {"last_message": "forever"}, "reply": {"text": "on ", "then": "repeat"}}"#;

/// A folder like an app's resources, whose worker is this repository's.
struct Resources {
    folder: PathBuf,
}

impl Resources {
    /// Make the folder. The worker is a mock that follows rules, or the real one without rules.
    fn new(name: &str, rules: Option<&str>) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder); // of an earlier test that failed
        fs::create_dir_all(folder.join("lmwire")).unwrap();
        let scenario = folder.join("scenario.json");
        fs::write(&scenario, format!(r#"{{"rules": [{}]}}"#, rules.unwrap_or_default())).unwrap();
        let command = match rules {
            Some(_) => format!("'{}' mock --scenario '{}'", lmwire(), scenario.display()),
            None => format!("'{}' \"$@\"", lmwire()),
        };
        let program = folder.join("lmwire/lmwire");
        fs::write(&program, format!("#!/bin/sh\necho $$ > '{}/pid'\nexec {command}\n", folder.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn service(&self) -> ChatService {
        ChatService::new(bundled_worker(&self.folder))
    }

    /// Return the process id of the latest worker.
    fn pid(&self) -> Pid {
        Pid::from_raw(fs::read_to_string(self.folder.join("pid")).unwrap().trim().parse().unwrap())
    }
}

impl Drop for Resources {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Return the program of this repository, or that of PATH.
fn lmwire() -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.venv/bin/lmwire");
    if program.exists() { program.to_string_lossy().into_owned() } else { "lmwire".into() }
}

fn is_alive(pid: Pid) -> bool {
    kill(pid, None).is_ok()
}

/// Run a test within its time.
async fn within<T>(test: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, test).await.expect("the events come")
}

/// The events of a load or an answer.
struct Events {
    sender: UnboundedSender<ChatEvent>,
    receiver: UnboundedReceiver<ChatEvent>,
}

impl Events {
    fn new() -> Self {
        let (sender, receiver) = unbounded_channel();
        Self { sender, receiver }
    }

    /// Return the text so far, the last event and whether there was progress.
    fn take(&mut self) -> (String, ChatEvent, bool) {
        let (mut text, mut end, mut progress) = (String::new(), None, false);
        while let Ok(event) = self.receiver.try_recv() {
            match event {
                ChatEvent::Text { text: delta } => text.push_str(&delta),
                ChatEvent::Progress { .. } => progress = true,
                event => assert_eq!(end.replace(event), None, "a task has one end"),
            }
        }
        (text, end.expect("the task has an end"), progress)
    }
}

/// Return what sends a task's events.
fn emit(sender: &UnboundedSender<ChatEvent>) -> impl Fn(ChatEvent) + use<> {
    let sender = sender.clone();
    move |event| sender.send(event).unwrap()
}

async fn load(service: &ChatService, model: &str) -> (ChatEvent, bool) {
    let mut events = Events::new();
    within(service.load(model, emit(&events.sender))).await;
    let (_, end, progress) = events.take();
    (end, progress)
}

async fn chat(service: &ChatService, text: &str) -> (String, ChatEvent) {
    let mut events = Events::new();
    within(service.chat(text, emit(&events.sender))).await;
    let (text, end, _) = events.take();
    (text, end)
}

/// Start an answer that never ends by itself, act after its first text, and return its end.
async fn interrupt(service: &ChatService, act: impl AsyncFnOnce()) -> ChatEvent {
    let mut events = Events::new();
    let chat = service.chat("forever", emit(&events.sender));
    let act = async {
        assert!(matches!(events.receiver.recv().await, Some(ChatEvent::Text { .. })));
        act().await;
    };
    within(async { tokio::join!(act, chat) }).await;
    events.take().1
}

#[tokio::test]
async fn the_worker_in_the_resources_streams_the_answers_of_the_built_in_model() {
    let resources = Resources::new("tiny", None);
    let service = resources.service();
    let (end, progress) = load(&service, "builtin:tiny").await;
    assert_eq!((end, progress), (ChatEvent::Loaded { model: "builtin:tiny".into() }, true));
    let (text, end) = chat(&service, "Who are you?").await;
    assert!(!text.is_empty());
    assert_eq!(end, ChatEvent::Ended);
    within(service.close()).await.unwrap();
    assert!(!is_alive(resources.pid()));
}

#[tokio::test]
async fn the_model_receives_the_conversation_so_far() {
    let messages = r#"[{"role": "user", "content": "one"}, {"role": "assistant", "content": "one"}, {"role": "user", "content": "two"}]"#;
    let rule = format!(r#"{{"match": {{"fields": {{"messages": {messages}}}}}, "reply": {{"text": "I remember."}}}}"#);
    let resources = Resources::new("conversation", Some(&rule));
    let service = resources.service();
    load(&service, "mock").await;
    chat(&service, "one").await;
    assert_eq!(chat(&service, "two").await, ("I remember.".into(), ChatEvent::Ended));
}

#[tokio::test]
async fn a_stop_keeps_the_text_so_far_and_the_next_message_is_answered() {
    let resources = Resources::new("stop", Some(FOREVER));
    let service = resources.service();
    load(&service, "mock").await;
    let end = interrupt(&service, async || service.stop()).await;
    assert_eq!(end, ChatEvent::Stopped);
    assert_eq!(chat(&service, "still there").await, ("still there".into(), ChatEvent::Ended));
}

#[tokio::test]
async fn a_stop_ends_a_load() {
    let progress = r#"{"stage": "download", "current": 1, "total": 9, "unit": "bytes", "delay_ms": 150}"#;
    let rule = format!(r#"{{"match": {{"cmd": "load"}}, "reply": {{"progress": [{progress}], "then": "wait"}}}}"#);
    let resources = Resources::new("stopped-load", Some(&rule));
    let service = resources.service();
    let mut events = Events::new();
    let stop = async {
        assert!(matches!(events.receiver.recv().await, Some(ChatEvent::Progress { .. })));
        service.stop();
    };
    within(async { tokio::join!(stop, service.load("mock", emit(&events.sender))) }).await;
    assert_eq!(events.take().1, ChatEvent::Stopped);
}

#[tokio::test]
async fn a_crash_is_reported_and_the_next_message_starts_a_new_worker_with_the_model() {
    let resources = Resources::new("crash", Some(FOREVER));
    let service = resources.service();
    load(&service, "mock").await;
    let pid = resources.pid();
    let end = interrupt(&service, async || kill(pid, Signal::SIGKILL).unwrap()).await;
    let ChatEvent::Failed { message } = end else { panic!("{end:?}") };
    assert!(message.ends_with("The next message starts a new worker."), "{message}");
    assert_eq!(chat(&service, "hello again").await, ("hello again".into(), ChatEvent::Ended));
    assert_ne!(resources.pid(), pid);
}

#[tokio::test]
async fn a_load_that_fails_says_why_and_another_one_can_follow() {
    let resources = Resources::new("failure", Some(""));
    let service = resources.service();
    assert!(matches!(chat(&service, "too early").await.1, ChatEvent::Failed { .. }));
    let (end, _) = load(&service, "/nonexistent").await;
    assert!(matches!(&end, ChatEvent::Failed { message } if message.contains("/nonexistent")), "{end:?}");
    assert_eq!(load(&service, "mock").await.0, ChatEvent::Loaded { model: "mock".into() });
}

#[tokio::test]
async fn the_end_of_the_app_ends_an_answer_and_the_workers_process() {
    let resources = Resources::new("close", Some(FOREVER));
    let service = resources.service();
    load(&service, "mock").await;
    let end = interrupt(&service, async || service.close().await.unwrap()).await;
    assert_eq!(end, ChatEvent::Stopped);
    assert!(!is_alive(resources.pid()));
}

#[test]
fn events_have_the_form_that_the_page_reads() {
    let progress = ChatEvent::Progress { stage: "read".into(), current: 1, total: None, unit: "bytes".into() };
    let form = serde_json::json!({ "type": "progress", "stage": "read", "current": 1, "total": null, "unit": "bytes" });
    assert_eq!(serde_json::to_value(progress).unwrap(), form);
    assert_eq!(serde_json::to_value(ChatEvent::Ended).unwrap(), serde_json::json!({ "type": "ended" }));
}
