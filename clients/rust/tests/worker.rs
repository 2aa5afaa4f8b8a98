//! The client with the mock, and with the real worker and its built-in model.

mod support;

use lmwire::{
    Chat, Embed, Error, ErrorCode, FinishReason, Format, LoadEvent, Media, Message, Tool, ToolChoice, Transcribe,
    Worker,
};
use serde_json::{Value, json};
use support::{builder, endless, idle, is_alive, mock, read, scenario, tiny, within};

fn weather() -> Tool {
    Tool::new("weather", "The weather.", json!({ "type": "object", "properties": { "city": { "type": "string" } } }))
}

#[test]
fn handles_and_streams_go_to_other_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    fn is_send<T: Send>() {}
    is_send_and_sync::<Worker>();
    is_send_and_sync::<lmwire::Supervisor>();
    is_send::<lmwire::AnswerStream>();
}

#[tokio::test]
async fn the_real_model_streams_a_chat() {
    let worker = within(tiny()).await;
    let (text, error) = within(read(&worker, "Who are you?")).await;
    assert!(error.is_none() && !text.is_empty(), "{error:?}");
    let pid = worker.pid();
    within(worker.close()).await.unwrap();
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn of_two_chats_at_once_one_is_cancelled_and_the_other_is_whole() {
    let worker = within(tiny()).await;
    let whole = worker.chat("Who are you?");
    let mut other = worker.chat(Chat::from("Tell me more").ignore_eos(true));
    while within(other.next()).await.unwrap().unwrap().text().is_empty() {}
    other.cancel();
    let cancelled = within(other.collect_answer()).await.unwrap();
    assert_eq!(cancelled.finish_reason, Some(FinishReason::Cancelled));
    let whole = within(whole.collect_answer()).await.unwrap();
    assert_eq!(whole.finish_reason, Some(FinishReason::Stop));
    assert!(!whole.text.is_empty());
}

#[tokio::test]
async fn the_real_model_calls_a_tool_and_answers_with_its_result() {
    let worker = within(tiny()).await;
    let mut messages = vec![Message::user("Is it raining in Oslo?")];
    let ask = Chat::new(messages.clone()).tools([weather()]).tool_choice(ToolChoice::Required).max_tokens(200u64);
    let answer = within(worker.chat(ask).collect_answer()).await.unwrap();
    let call = &answer.tool_calls[0];
    assert_eq!(call.name, "weather");
    assert!(call.arguments.is_object());
    messages.extend([answer.to_message(), call.result("Rain.")]);
    let answer =
        within(worker.chat(Chat::new(messages).tools([weather()]).max_tokens(8u64)).collect_answer()).await.unwrap();
    assert!(!answer.token_ids.is_empty());
}

#[tokio::test]
async fn the_real_model_follows_a_schema() {
    let worker = within(tiny()).await;
    let schema = json!({
        "type": "object", "properties": { "born": { "type": "integer" } }, "required": ["born"], "additionalProperties": false,
    });
    let chat = Chat::from("Ada was born in 1815.").format(Format::JsonSchema { schema }).max_tokens(200u64);
    let answer = within(worker.chat(chat).collect_answer()).await.unwrap();
    assert!(serde_json::from_str::<Value>(&answer.text).unwrap()["born"].is_i64(), "{}", answer.text);
}

#[tokio::test]
async fn a_load_streams_its_progress_and_ends_with_the_model() {
    let worker = within(builder(&["worker"]).spawn()).await.unwrap();
    let mut load = worker.load_stream("builtin:tiny");
    let (mut stages, mut model) = (Vec::new(), None);
    while let Some(event) = within(load.next()).await {
        match event.unwrap() {
            LoadEvent::Progress(progress) => stages.push(progress.stage),
            LoadEvent::Loaded(loaded) => model = Some(loaded),
            _ => {}
        }
    }
    assert!(!stages.is_empty());
    assert!(model.unwrap().capabilities.contains(&"chat".to_owned()));
}

#[tokio::test]
async fn an_answer_has_its_reasoning_its_choices_and_its_log_probabilities() {
    let choices = json!([{ "reasoning": "Hm.", "text": "one" }, { "text": "two", "finish_reason": "length" }]);
    let worker = scenario(json!({ "reply": { "choices": choices } })).await;
    let chat = Chat::from("?").n(2u64).logprobs(true).top_logprobs(1u64);
    let answer = within(worker.chat(chat).collect_answer()).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.reasoning.as_str()), ("one", "Hm."));
    assert_eq!((answer.choices[1].text.as_str(), answer.choices[1].finish_reason), ("two", Some(FinishReason::Length)));
    assert_eq!(answer.logprobs.len(), answer.token_ids.len());
    assert_eq!(answer.logprobs[0].top.as_ref().unwrap().len(), 1);
}

#[tokio::test]
async fn the_drop_of_a_stream_cancels_the_request_and_not_the_worker() {
    let worker = scenario(endless()).await;
    let mut stream = worker.chat("forever");
    while within(stream.next()).await.unwrap().unwrap().text().is_empty() {}
    drop(stream);
    within(idle(&worker)).await;
    assert_eq!(within(read(&worker, "still there")).await.0, "still there");
    assert_eq!(within(worker.stats()).await.unwrap().requests.cancelled, 1);
}

#[tokio::test]
async fn texts_become_vectors_in_both_encodings() {
    let worker = mock(&[]).await;
    let vectors = within(worker.embed(Embed::new(["sea", "ocean"]))).await.unwrap().vectors;
    let numbers = within(worker.embed(Embed::new(["sea", "ocean"]).encoding("float"))).await.unwrap().vectors;
    assert_eq!(vectors.len(), 2);
    assert!(!vectors[0].is_empty());
    assert_eq!(vectors, numbers);
}

#[tokio::test]
async fn a_recording_becomes_segments_and_a_text() {
    let worker = scenario(json!({ "match": { "audio": "note" }, "reply": { "text": "Buy milk. And bread." } })).await;
    let note = || Transcribe::new(Media::path("/tmp/note.wav"));
    let transcript = within(worker.transcribe(note())).await.unwrap();
    assert_eq!((transcript.text.as_str(), transcript.segments.len()), ("Buy milk. And bread.", 2));
    let mut stream = worker.segments(note());
    let mut segments = Vec::new();
    while let Some(segment) = within(stream.next()).await {
        segments.push(segment.unwrap());
    }
    assert_eq!(segments, transcript.segments);
}

#[tokio::test]
async fn a_text_becomes_a_speech() {
    let worker = mock(&[]).await;
    let speech = within(worker.speak("Buy milk. And bread.")).await.unwrap();
    let seconds = speech.samples.len() as f64 / f64::from(speech.sample_rate);
    assert!((seconds - speech.end.duration_s).abs() < 0.01);
    let mut stream = worker.audio_chunks("Buy milk. And bread.");
    let mut samples = Vec::new();
    while let Some(chunk) = within(stream.next()).await {
        samples.extend(chunk.unwrap().samples);
    }
    assert_eq!(samples, speech.samples);
}

#[tokio::test]
async fn a_prompt_has_tokens_and_a_model_can_be_unloaded() {
    let worker = mock(&[]).await;
    let tokens = within(worker.tokenize("to be or")).await.unwrap();
    assert_eq!((tokens.text.as_str(), tokens.ids.len() as u64), ("to be or", tokens.count));
    within(worker.unload()).await.unwrap();
    let error = within(worker.info()).await.unwrap_err();
    assert_eq!(error.code(), Some(&ErrorCode::NotLoaded));
}

#[tokio::test]
async fn a_refused_request_names_the_field_and_its_code() {
    let worker = mock(&[]).await;
    let error = within(worker.chat(Chat::from("hi").top_p(7.0)).collect_answer()).await.unwrap_err();
    let Error::Request(error) = error else { panic!("{error}") };
    assert_eq!(
        (error.code, error.retryable, error.field.as_deref()),
        (ErrorCode::InvalidRequest, false, Some("top_p"))
    );
}

#[tokio::test]
async fn a_feature_that_the_worker_lacks_is_not_sent() {
    let worker = mock(&[]).await;
    let chat = Chat::from("hi").format(Format::JsonObject);
    let error = within(worker.chat(chat).collect_answer()).await.unwrap_err();
    assert!(matches!(&error, Error::Unsupported { features, .. } if features == &["chat.format"]), "{error}");
    let error = within(builder(&["mock"]).features(["chat.dance"]).spawn()).await.unwrap_err();
    assert!(error.to_string().contains("does not serve chat.dance"), "{error}");
}

#[tokio::test]
async fn a_number_that_json_does_not_have_is_not_sent() {
    let worker = mock(&[]).await;
    let bias = [(7, f64::INFINITY)].into_iter().collect::<std::collections::BTreeMap<u64, f64>>();
    for (chat, field) in [
        (Chat::from("hi").temperature(f64::NAN), "`temperature`"),
        (Chat::from("hi").logit_bias(bias), "`logit_bias.7`"),
    ] {
        let error = within(worker.chat(chat).collect_answer()).await.unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
    }
}

#[tokio::test]
async fn a_closed_worker_refuses_requests_and_a_close_after_requests_ends_them() {
    let worker = mock(&[]).await;
    let stream = worker.chat("a b");
    within(worker.close_after_requests()).await.unwrap();
    assert_eq!(within(stream.collect_answer()).await.unwrap().text, "a b");
    assert!(matches!(within(read(&worker, "hi")).await.1, Some(Error::WorkerLost(_))));
    within(worker.close()).await.unwrap();
}
