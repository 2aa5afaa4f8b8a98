package lmwire

import "slices"

// An Event is part of an answer: a [*Token], a [*ToolCallDelta], a [*Progress], or the [*Result] at its end. A later
// version may add types, so a type switch needs no default.
type Event interface {
	// Text returns the answer's new text. It is empty for reasoning, tool calls, progress and the result.
	Text() string
	isEvent()
}

// A Channel is what a [Token] belongs to. A later version of the protocol may add some.
type Channel string

// The channels of an answer.
const (
	Content   Channel = "content"
	Reasoning Channel = "reasoning" // What a reasoning model writes before its answer.
)

// A Token has generated tokens and their text, which may be empty: text ends at the end of a character.
type Token struct {
	Token    string    `json:"token"`             // Text of the channel. [Token.Text] is the answer's.
	TokenIDs []int64   `json:"token_ids"`         // The tokens.
	Choice   int       `json:"choice,omitzero"`   // Number of the answer, with N above 1.
	Channel  Channel   `json:"channel,omitzero"`  // Content or Reasoning.
	Call     bool      `json:"call,omitzero"`     // Whether the text belongs to a call that was cut off.
	Logprobs []Logprob `json:"logprobs,omitzero"` // One for each of TokenIDs, if they were requested.
	// PromptLogprobs are the next tokens of the prompt, if they were requested. Such an event has no text.
	PromptLogprobs []Logprob `json:"prompt_logprobs,omitzero"`
}

// Text returns the text, if it is part of the answer.
func (t *Token) Text() string {
	if t.Channel == Content {
		return t.Token
	}
	return ""
}

// A Logprob is the log-probability of a token.
type Logprob struct {
	TokenID int64        `json:"token_id"`
	Token   string       `json:"token"`            // The token's own text, at most 256 characters.
	Logprob *float64     `json:"logprob,omitzero"` // Natural logarithm of its probability. Nil for a probability of 0.
	Bytes   []int64      `json:"bytes,omitzero"`   // Its bytes, if its text alone is incomplete.
	Top     []TopLogprob `json:"top,omitzero"`     // The most probable tokens in its place.
	Text    *string      `json:"text,omitzero"`    // The part of its text that the answer contains. Nil: all of it.
}

// A TopLogprob is one of the most probable tokens in a place.
type TopLogprob struct {
	TokenID int64    `json:"token_id"`
	Token   string   `json:"token"`
	Logprob *float64 `json:"logprob,omitzero"`
	Bytes   []int64  `json:"bytes,omitzero"`
}

// A ToolCallDelta is a part of a tool call. An [Accumulator] joins the parts.
type ToolCallDelta struct {
	Choice    int    `json:"choice,omitzero"`    // Number of the answer, with N above 1.
	Index     int    `json:"index"`              // Number of the call in its answer.
	CallID    string `json:"call_id,omitzero"`   // In the first part: the call's id.
	Name      string `json:"name,omitzero"`      // In the first part: the function.
	Arguments string `json:"arguments,omitzero"` // The next part of the arguments' JSON text.
	Complete  *bool  `json:"complete,omitzero"`  // In the last part: whether the call is whole. Run no other call.
}

// Text returns an empty text.
func (*ToolCallDelta) Text() string { return "" }

// Progress reports how far a long operation has come.
type Progress struct {
	Stage   string `json:"stage"`          // "resolve", "download", "read", "warm_up", "prefill" or "transcribe".
	Current int64  `json:"current"`        // Amount done.
	Total   *int64 `json:"total,omitzero"` // Whole amount, if it is known.
	Unit    string `json:"unit"`           // "bytes", "tokens", "steps" or "seconds".
}

// Text returns an empty text.
func (*Progress) Text() string { return "" }

// A FinishReason is the reason why an answer ended.
type FinishReason string

// The finish reasons. [FinishOther] stands for those of a later version.
const (
	FinishStop      FinishReason = "stop"       // The model ended its turn, or a stop string came.
	FinishLength    FinishReason = "length"     // MaxTokens was reached, or the context is full.
	FinishToolCalls FinishReason = "tool_calls" // The answer ends with tool calls.
	FinishCancelled FinishReason = "cancelled"  // The request was stopped. The text so far is valid.
	FinishTimeout   FinishReason = "timeout"    // TimeoutMS was reached. The text so far is valid.
	FinishCapacity  FinishReason = "capacity"   // Memory ran out. The text so far is valid.
	FinishOther     FinishReason = "other"
)

var finishReasons = []FinishReason{
	FinishStop, FinishLength, FinishToolCalls, FinishCancelled, FinishTimeout, FinishCapacity,
}

func (r FinishReason) known() FinishReason {
	if slices.Contains(finishReasons, r) {
		return r
	}
	return FinishOther
}

// A Result is the last event of an answer.
type Result struct {
	FinishReason FinishReason `json:"finish_reason"`
	Stop         string       `json:"stop,omitzero"` // The stop string that ended the answer.
	Seed         int64        `json:"seed"`          // The seed in use.
	Usage        Usage        `json:"usage"`
	Timings      Timings      `json:"timings"`
	Choices      []Choice     `json:"choices,omitzero"`    // With N above 1: how each answer ended.
	CacheMiss    *CacheMiss   `json:"cache_miss,omitzero"` // With CacheReport: where the prompt ceased to be known.
}

// A CacheMiss tells where a prompt ceased to be known to the cache.
type CacheMiss struct {
	KnownTokens int64  `json:"known_tokens"`   // Tokens with which the prompt begins like a cached one.
	Token       string `json:"token,omitzero"` // Text of the next one. Empty: what is cached ends there.
}

// Text returns an empty text.
func (*Result) Text() string { return "" }

// A Choice is the end of one of several answers.
type Choice struct {
	FinishReason     FinishReason `json:"finish_reason"`
	CompletionTokens int64        `json:"completion_tokens"`
	Stop             string       `json:"stop,omitzero"`
}

// Usage has numbers of tokens.
type Usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CachedTokens     int64 `json:"cached_tokens"`             // Prompt tokens that came from the cache.
	CompletionTokens int64 `json:"completion_tokens"`         // Of all choices, end-of-turn tokens included.
	ReasoningTokens  int64 `json:"reasoning_tokens,omitzero"` // Completion tokens of reasoning.
	DraftAccepted    int64 `json:"draft_accepted,omitzero"`   // Completion tokens that the draft model proposed.
}

// Timings has milliseconds since the worker read the request, and rates. A value is 0 if the request ended before it.
type Timings struct {
	QueuedMS     float64 `json:"queued_ms"`               // Until the engine started the request.
	PrefillMS    float64 `json:"prefill_ms,omitzero"`     // From the engine's start to the first token.
	FirstTokenMS float64 `json:"first_token_ms,omitzero"` // Until the first token.
	TotalMS      float64 `json:"total_ms"`                // Until the end.
	PromptTPS    float64 `json:"prompt_tps,omitzero"`     // Prompt tokens processed per second.
	DecodeTPS    float64 `json:"decode_tps,omitzero"`     // Tokens generated per second after the first.
}

// A Segment is a part of a transcript.
type Segment struct {
	Index  int     `json:"index"`
	StartS float64 `json:"start_s"` // Start, in seconds of the recording.
	EndS   float64 `json:"end_s"`   // End, in seconds of the recording.
	Text   string  `json:"text"`
	Words  []Word  `json:"words,omitzero"` // With TranscribeParams.Words: its words.
}

// A Word is a word of a transcript, with the white space and punctuation that belong to it.
type Word struct {
	Text   string  `json:"text"`
	StartS float64 `json:"start_s"`
	EndS   float64 `json:"end_s"`
}

// An AudioChunk is a part of a speech.
type AudioChunk struct {
	Index      int     `json:"index"`
	SampleRate int     `json:"sample_rate"` // Samples per second, the same in all parts.
	Audio      string  `json:"audio"`       // Base64 of the samples.
	Samples    []int16 `json:"-"`           // The samples, of one channel.
}

// embedding is a part of a vector.
type embedding struct {
	Index     int `json:"index"`
	Offset    int `json:"offset,omitzero"`
	Dims      int `json:"dims"`
	Embedding any `json:"embedding"` // base64 of little-endian float32, or numbers
	numbers   []float32
}

func (*Token) isEvent()         {}
func (*ToolCallDelta) isEvent() {}
func (*Progress) isEvent()      {}
func (*Result) isEvent()        {}
