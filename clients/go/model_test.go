package lmwire

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// startTiny returns a real worker with the built-in model.
func startTiny(t *testing.T) *Worker {
	t.Helper()
	worker := start(t, WithFeatures("chat.tools", "chat.format"))
	if _, err := worker.Load(within(t), LoadParams{Path: "builtin:tiny"}); err != nil {
		t.Fatal(err)
	}
	return worker
}

func TestTheBuiltInModel(t *testing.T) {
	t.Parallel()
	worker := startTiny(t)
	t.Run("streams a chat", func(t *testing.T) { streamsAChat(t, worker) })
	t.Run("serves a chat beside one that is cancelled", func(t *testing.T) { servesAChatBesideACancelledOne(t, worker) })
	t.Run("answers in the form of a schema", func(t *testing.T) { answersInTheFormOfASchema(t, worker) })
	t.Run("calls a tool and uses its result", func(t *testing.T) { callsATool(t, worker) })
}

func streamsAChat(t *testing.T, worker *Worker) {
	var accumulator Accumulator
	tokens := 0
	for event, err := range worker.Chat(within(t), chat("Who are you?")) {
		if err != nil {
			t.Fatal(err)
		}
		accumulator.Add(event)
		if event.Text() != "" {
			tokens++
		}
	}
	response, err := accumulator.Response()
	if err != nil || !strings.HasPrefix(response.Text, "I am ") || response.FinishReason != FinishStop || tokens < 2 {
		t.Errorf("%v: %d events: %+v", err, tokens, response.Answer)
	}
}

func servesAChatBesideACancelledOne(t *testing.T, worker *Worker) {
	endless := chat("Who are you?")
	endless.IgnoreEOS = true
	for event, err := range worker.Chat(within(t), endless) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Text() == "" {
			continue
		}
		response, err := worker.Complete(within(t), chat("Who are you?"))
		if err != nil || response.FinishReason != FinishStop {
			t.Errorf("%v: %+v", err, response)
		}
		break
	}
	stats, err := worker.Stats(within(t))
	for err == nil && stats.Requests.Cancelled == 0 {
		stats, err = worker.Stats(within(t))
	}
	if err != nil || stats.Requests.Active != 0 {
		t.Errorf("%v: %+v", err, stats)
	}
}

func answersInTheFormOfASchema(t *testing.T, worker *Worker) {
	params := chat("Ada is 36 years old.")
	params.Format = JSONSchema(map[string]any{
		"type":                 "object",
		"properties":           map[string]any{"name": map[string]any{"enum": []string{"Ada", "Bob"}}, "age": map[string]any{"type": "integer", "maximum": 150}},
		"required":             []string{"name", "age"},
		"additionalProperties": false,
	})
	response, err := worker.Complete(within(t), params)
	if err != nil {
		t.Fatal(err)
	}
	var person struct {
		Name string
		Age  *int
	}
	if err := json.Unmarshal([]byte(response.Text), &person); err != nil || !slices.Contains([]string{"Ada", "Bob"}, person.Name) || person.Age == nil {
		t.Errorf("%v: %q", err, response.Text)
	}
}

func callsATool(t *testing.T, worker *Worker) {
	params := chat("What is the weather in Rome?")
	params.Tools = []Tool{{Function: Function{
		Name:        "get_weather",
		Description: "Get the weather of a city.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","maxLength":20}},
			"required":["city"],"additionalProperties":false}`),
	}}}
	params.ToolChoice = ToolChoice{Name: "get_weather"}
	response, err := worker.Complete(within(t), params)
	if err != nil || len(response.ToolCalls) != 1 || response.FinishReason != FinishToolCalls {
		t.Fatalf("%v: %+v", err, response)
	}
	call := response.ToolCalls[0]
	var arguments struct{ City string }
	if err := json.Unmarshal(call.Arguments, &arguments); err != nil || call.Name != "get_weather" || arguments.City == "" {
		t.Errorf("%v: %+v", err, call)
	}
	params.Messages = append(params.Messages, response.Message(), call.Result("sunny, 21 degrees"))
	params.ToolChoice = ToolChoiceNone
	response, err = worker.Complete(within(t), params)
	if err != nil || response.Text == "" || len(response.ToolCalls) != 0 {
		t.Errorf("%v: %+v", err, response)
	}
}
