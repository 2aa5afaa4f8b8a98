package lmwire

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

const maxChoices = 16

// An Answer is one whole answer.
type Answer struct {
	Text         string
	Reasoning    string     // What came before the answer.
	ToolCalls    []ToolCall // The whole calls, in order. A call that was cut off is part of Text.
	FinishReason FinishReason
	Stop         string    // The stop string that ended it.
	TokenIDs     []int64   // The tokens of the text and of the reasoning.
	Logprobs     []Logprob // One for each of TokenIDs, if they were requested.
}

// Message returns the answer as a message, to continue the conversation. It lacks the request's Prefix.
func (a Answer) Message() Message {
	return Message{Role: Assistant, Content: a.Text, Reasoning: a.Reasoning, ToolCalls: a.ToolCalls}
}

// A Response has the answers to a request, and its result.
type Response struct {
	Answer           // The first answer.
	Answers []Answer // All N answers.
	Result  *Result  // Usage, timings, seed.
	// PromptLogprobs has one for each token of the prompt, with GenerateParams.PromptLogprobs.
	PromptLogprobs []Logprob
}

// An Accumulator joins the events of a request to answers. The zero value is ready to use. It is not safe for concurrent
// use.
type Accumulator struct {
	choices map[int]*choiceParts
	result  *Result
	prompt  []Logprob
}

type choiceParts struct {
	text, reasoning strings.Builder
	tokenIDs        []int64
	logprobs        []Logprob
	calls           map[int]*callParts
}

type callParts struct {
	id, name  string
	arguments strings.Builder
	complete  bool
}

// Add takes the next event.
func (a *Accumulator) Add(event Event) {
	switch event := event.(type) {
	case *Token:
		a.prompt = append(a.prompt, event.PromptLogprobs...)
		a.choice(event.Choice).addToken(event)
	case *ToolCallDelta:
		a.choice(event.Choice).addCall(event)
	case *Result:
		a.result = event
	}
}

func (a *Accumulator) choice(number int) *choiceParts {
	choice := a.choices[number]
	if choice == nil {
		choice = &choiceParts{calls: map[int]*callParts{}}
		if a.choices == nil {
			a.choices = map[int]*choiceParts{}
		}
		a.choices[number] = choice
	}
	return choice
}

func (c *choiceParts) addToken(token *Token) {
	switch token.Channel {
	case Content:
		c.text.WriteString(token.Token)
	case Reasoning:
		c.reasoning.WriteString(token.Token)
	}
	c.tokenIDs = append(c.tokenIDs, token.TokenIDs...)
	c.logprobs = append(c.logprobs, token.Logprobs...)
}

func (c *choiceParts) addCall(delta *ToolCallDelta) {
	call := c.calls[delta.Index]
	if call == nil {
		call = &callParts{}
		c.calls[delta.Index] = call
	}
	if delta.CallID != "" {
		call.id = delta.CallID
	}
	if delta.Name != "" {
		call.name = delta.Name
	}
	call.arguments.WriteString(delta.Arguments)
	if delta.Complete != nil {
		call.complete = *delta.Complete
	}
}

// Response returns the answers so far. Result is nil, and the finish reasons are empty, before the request has ended.
//
// It fails if the arguments of a whole call are not a JSON object, which no worker sends.
func (a *Accumulator) Response() (*Response, error) {
	ends := a.ends()
	response := &Response{Result: a.result, PromptLogprobs: a.prompt, Answers: make([]Answer, len(ends))}
	for number, end := range ends {
		answer, err := a.choice(number).answer(end)
		if err != nil {
			return nil, err
		}
		response.Answers[number] = answer
	}
	response.Answer = response.Answers[0]
	return response, nil
}

// ends returns how each answer ended.
func (a *Accumulator) ends() []Choice {
	switch {
	case a.result == nil: // the answers that have begun; a worker serves at most 16
		highest := 0
		for number := range a.choices {
			highest = max(highest, number)
		}
		return make([]Choice, min(highest, maxChoices-1)+1)
	case len(a.result.Choices) > 0:
		return a.result.Choices
	default:
		return []Choice{{FinishReason: a.result.FinishReason, Stop: a.result.Stop}}
	}
}

func (c *choiceParts) answer(end Choice) (Answer, error) {
	calls, err := c.toolCalls()
	return Answer{
		Text:         c.text.String(),
		Reasoning:    c.reasoning.String(),
		ToolCalls:    calls,
		FinishReason: end.FinishReason,
		Stop:         end.Stop,
		TokenIDs:     c.tokenIDs,
		Logprobs:     c.logprobs,
	}, err
}

func (c *choiceParts) toolCalls() (calls []ToolCall, err error) {
	for _, index := range slices.Sorted(maps.Keys(c.calls)) {
		parts := c.calls[index]
		if !parts.complete {
			continue
		}
		var arguments map[string]json.RawMessage
		text := parts.arguments.String()
		if err := json.Unmarshal([]byte(text), &arguments); err != nil || arguments == nil {
			return nil, fmt.Errorf("lmwire: the arguments of the call %q are not a JSON object: %.200q", parts.id, text)
		}
		calls = append(calls, ToolCall{ID: parts.id, Name: parts.name, Arguments: json.RawMessage(text)})
	}
	return calls, nil
}

// Collect reads the events of a request to its end, and returns the answers.
//
//	response, err := lmwire.Collect(worker.Generate(ctx, params))
func Collect(events iter.Seq2[Event, error]) (*Response, error) {
	var accumulator Accumulator
	for event, err := range events {
		if err != nil {
			return nil, err
		}
		accumulator.Add(event)
	}
	return accumulator.Response()
}
