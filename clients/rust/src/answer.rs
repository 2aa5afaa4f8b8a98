use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::event::{Channel, Choice, Event, Finish, FinishReason, Logprob, Token, ToolCallDelta};
use crate::message::{Content, Message, Role, ToolCall};

const MAX_CHOICES: usize = 16;

/// One of the answers to a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnswerChoice {
    /// The answer's text.
    pub text: String,
    /// What came before the answer.
    pub reasoning: String,
    /// The whole calls, in order. A call that was cut off is part of `text`.
    pub tool_calls: Vec<ToolCall>,
    /// The reason of the end. None before the end.
    pub finish_reason: Option<FinishReason>,
    /// The stop string that ended it.
    pub stop: Option<String>,
    /// The tokens of the text and of the reasoning.
    pub token_ids: Vec<u64>,
    /// One for each of `token_ids`, if they were requested.
    pub logprobs: Vec<Logprob>,
}

impl AnswerChoice {
    /// Return the answer as a message, to continue the conversation. It lacks the request's `prefix`.
    pub fn to_message(&self) -> Message {
        let text = !self.text.is_empty() || self.tool_calls.is_empty();
        Message {
            role: Role::Assistant,
            content: text.then(|| Content::Text(self.text.clone())),
            reasoning: (!self.reasoning.is_empty()).then(|| self.reasoning.clone()),
            tool_calls: (!self.tool_calls.is_empty()).then(|| self.tool_calls.clone()),
            tool_call_id: None,
            name: None,
        }
    }
}

/// The answers to a request, and its end. It derefs to the first answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// All `n` answers: at least one.
    pub choices: Vec<AnswerChoice>,
    /// Usage, timings, seed. None before the end.
    pub finish: Option<Finish>,
    /// One for each token of the prompt, with `prompt_logprobs` of [`Generate`](crate::Generate).
    pub prompt_logprobs: Vec<Logprob>,
}

impl std::ops::Deref for Answer {
    type Target = AnswerChoice;

    fn deref(&self) -> &AnswerChoice {
        &self.choices[0]
    }
}

/// Joins the events of a request to answers.
#[derive(Debug, Default)]
pub struct Accumulator {
    choices: BTreeMap<usize, Parts>,
    prompt: Vec<Logprob>,
    finish: Option<Finish>,
}

#[derive(Debug, Default)]
struct Parts {
    answer: AnswerChoice,
    calls: BTreeMap<usize, CallParts>,
}

#[derive(Debug, Default)]
struct CallParts {
    id: String,
    name: String,
    arguments: String,
    complete: bool,
}

impl Accumulator {
    /// Return an accumulator without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Take the next event.
    pub fn add(&mut self, event: Event) {
        match event {
            Event::Token(mut token) => {
                self.prompt.append(&mut token.prompt_logprobs.take().unwrap_or_default());
                self.choices.entry(token.choice).or_default().add_token(token);
            }
            Event::ToolCall(delta) => self.choices.entry(delta.choice).or_default().add_call(delta),
            Event::Finish(finish) => self.finish = Some(finish),
            Event::Progress(_) | Event::Unknown(_) => {}
        }
    }

    /// Return the answers so far.
    ///
    /// # Errors
    ///
    /// [`Error::MalformedResult`] if the arguments of a whole call are not a JSON object.
    pub fn answer(mut self) -> Result<Answer> {
        let ends = self.ends();
        let choices = ends.into_iter().enumerate().map(|(number, end)| {
            let parts = self.choices.remove(&number).unwrap_or_default();
            parts.answer(end)
        });
        let choices = choices.collect::<Result<_>>()?;
        Ok(Answer { choices, finish: self.finish, prompt_logprobs: self.prompt })
    }

    /// Return how each answer ended. Before the end, those that have begun have no reason.
    fn ends(&self) -> Vec<Option<Choice>> {
        let Some(finish) = &self.finish else {
            let highest = self.choices.keys().last().copied().unwrap_or_default();
            return vec![None; highest.min(MAX_CHOICES - 1) + 1];
        };
        match &finish.choices {
            Some(choices) if !choices.is_empty() => choices.iter().cloned().map(Some).collect(),
            _ => vec![Some(Choice {
                finish_reason: finish.finish_reason,
                completion_tokens: finish.usage.completion_tokens,
                stop: finish.stop.clone(),
            })],
        }
    }
}

impl Parts {
    fn add_token(&mut self, token: Token) {
        match token.channel {
            Channel::Content => self.answer.text.push_str(&token.text),
            Channel::Reasoning => self.answer.reasoning.push_str(&token.text),
            Channel::Unknown(_) => {}
        }
        self.answer.token_ids.extend(token.token_ids);
        self.answer.logprobs.extend(token.logprobs.unwrap_or_default());
    }

    fn add_call(&mut self, delta: ToolCallDelta) {
        let call = self.calls.entry(delta.index).or_default();
        if let Some(id) = delta.call_id {
            call.id = id;
        }
        if let Some(name) = delta.name {
            call.name = name;
        }
        call.arguments.push_str(&delta.arguments.unwrap_or_default());
        call.complete |= delta.complete.unwrap_or_default();
    }

    fn answer(self, end: Option<Choice>) -> Result<AnswerChoice> {
        let whole = self.calls.into_values().filter(|call| call.complete);
        let tool_calls = whole.map(CallParts::call).collect::<Result<_>>()?;
        let (finish_reason, stop) = end.map_or((None, None), |end| (Some(end.finish_reason), end.stop));
        Ok(AnswerChoice { tool_calls, finish_reason, stop, ..self.answer })
    }
}

impl CallParts {
    fn call(self) -> Result<ToolCall> {
        let arguments: Map<String, Value> = serde_json::from_str(&self.arguments).map_err(|error| {
            Error::MalformedResult(format!("the arguments of the call {:?} are not a JSON object: {error}", self.id))
        })?;
        Ok(ToolCall { id: self.id, name: self.name, arguments: Value::Object(arguments) })
    }
}
