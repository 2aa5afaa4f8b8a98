//! A session against the vectors of protocol/vectors.

use std::fs;

use serde::Deserialize;
use serde_json::Value;

use crate::decode::RawEvent;
use crate::error::{LossReason, Result};
use crate::session::{Queue, Session, queue};

#[derive(Deserialize)]
struct Vector {
    name: String,
    direction: String,
    line: Value,
    command: Option<String>,
    host: Option<String>,
    #[serde(default)]
    ignored: bool,
}

impl Vector {
    /// Return the line, which is a text or a list of pieces.
    fn bytes(&self) -> Vec<u8> {
        match &self.line {
            Value::Array(pieces) => pieces.iter().flat_map(piece).collect(),
            whole => piece(whole),
        }
    }
}

fn piece(piece: &Value) -> Vec<u8> {
    match piece {
        Value::String(text) => text.clone().into_bytes(),
        Value::Object(special) => match special.get("hex") {
            Some(hex) => hex.as_str().unwrap().as_bytes().chunks(2).map(from_hex).collect(),
            None => {
                let times = special["times"].as_u64().unwrap();
                special["repeat"].as_str().unwrap().repeat(times.try_into().unwrap()).into_bytes()
            }
        },
        other => panic!("{other}"),
    }
}

fn from_hex(digits: &[u8]) -> u8 {
    u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap()
}

/// Return the vectors of a file. The crate's archive does not contain them: there the tests have nothing to do.
fn vectors(name: &str) -> Vec<Vector> {
    let path = format!("{}/../../protocol/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let Ok(text) = fs::read_to_string(path) else { return Vec::new() };
    text.lines().map(|line| serde_json::from_str::<Vector>(line).unwrap()).filter(|v| v.direction == "event").collect()
}

/// Give a line to a session in which a request "1" is in flight. Return what that request got.
fn receive(vector: &Vector) -> (Vec<Result<RawEvent>>, Result<(), LossReason>) {
    let (session, _input) = Session::new(usize::MAX, None);
    // The session keeps the names of its own commands, and so do these tests.
    let command: &'static str = vector.command.clone().unwrap_or("generate".into()).leak();
    session.greeted();
    let (end, mut queue) = queue();
    session.send(command, b"{}", Some(end)).unwrap();
    let received = session.receive(&vector.bytes());
    (known_events(&mut queue), received)
}

fn known_events(queue: &mut Queue) -> Vec<Result<RawEvent>> {
    let mut events = Vec::new();
    while let Ok((event, _)) = queue.events.try_recv() {
        if !matches!(event, Ok(RawEvent::Unknown(_))) {
            events.push(event);
        }
    }
    events
}

#[test]
fn every_valid_event_is_read() {
    for vector in vectors("events.valid.jsonl") {
        let envelope: Value = serde_json::from_slice(&vector.bytes()).unwrap_or_default();
        let ignored = vector.ignored || envelope["id"] != "1";
        let (events, received) = receive(&vector);
        assert!(received.is_ok(), "{}: {received:?}", vector.name);
        assert_eq!(events.len(), usize::from(!ignored), "{}: {events:?}", vector.name);
    }
}

#[test]
fn every_invalid_event_has_the_consequence_of_the_protocol() {
    for vector in vectors("events.invalid.jsonl") {
        let (events, received) = receive(&vector);
        let seen = (received.is_ok(), events.len());
        match vector.host.as_deref() {
            Some("end") => assert_eq!(seen, (false, 0), "{}: {events:?}", vector.name),
            Some("ignore") => assert_eq!(seen, (true, 0), "{}: {received:?} {events:?}", vector.name),
            Some("accept") => assert_eq!(seen, (true, 1), "{}: {received:?} {events:?}", vector.name),
            Some("either") => {}
            other => panic!("{}: unknown consequence {other:?}", vector.name),
        }
    }
}
