package lmwire

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestAChatStreamsItsAnswerAndEndsWithAResult(t *testing.T) {
	t.Parallel()
	worker := startMock(t)
	var text strings.Builder
	var last Event
	for event, err := range worker.Chat(within(t), chat("to be or not")) {
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(event.Text())
		last = event
	}
	result, ok := last.(*Result)
	if !ok || text.String() != "to be or not" || result.FinishReason != FinishStop || result.Usage.CompletionTokens == 0 {
		t.Errorf("%q, then %+v", text.String(), last)
	}
}

func TestAnAnswerIsJoinedWithItsReasoningAndChoices(t *testing.T) {
	t.Parallel()
	worker := startScenario(t, map[string]any{"reply": map[string]any{"choices": []any{
		map[string]any{"reasoning": "Hm.", "text": "one"},
		map[string]any{"text": "two", "finish_reason": "length"},
	}}})
	params := chat("?")
	params.N, params.Logprobs, params.TopLogprobs = 2, true, 1
	response, err := worker.Complete(within(t), params)
	if err != nil {
		t.Fatal(err)
	}
	first, second := response.Answers[0], response.Answers[1]
	if response.Text != "one" || first.Reasoning != "Hm." || first.FinishReason != FinishStop {
		t.Errorf("the first answer is %+v", first)
	}
	if second.Text != "two" || second.FinishReason != FinishLength {
		t.Errorf("the second answer is %+v", second)
	}
	if len(first.Logprobs) != len(first.TokenIDs) || len(first.Logprobs[0].Top) != 1 {
		t.Errorf("%d tokens have the log-probabilities %+v", len(first.TokenIDs), first.Logprobs)
	}
}

func TestAPromptMayBeTokens(t *testing.T) {
	t.Parallel()
	worker := startMock(t)
	response, err := Collect(worker.Generate(within(t), GenerateParams{Prompt: "a b c", Generation: Generation{MaxTokens: Ptr[int64](2)}}))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Collect(worker.Generate(within(t), GenerateParams{TokenIDs: response.TokenIDs}))
	if err != nil || response.FinishReason != FinishLength || len(again.TokenIDs) != len(response.TokenIDs) {
		t.Errorf("%v: %+v, then %+v", err, response.Answer, again)
	}
}

func TestThePromptMayHaveLogprobs(t *testing.T) {
	t.Parallel()
	worker := startMock(t)
	params := GenerateParams{Prompt: "a b c", PromptLogprobs: true, Generation: Generation{MaxTokens: Ptr[int64](1)}}
	response, err := Collect(worker.Generate(within(t), params))
	if err != nil || len(response.PromptLogprobs) != 3 || len(response.TokenIDs) != 1 || response.Logprobs != nil {
		t.Errorf("%v: %+v", err, response)
	}
}

func TestToBreakCancelsTheRequestAndNotTheWorker(t *testing.T) {
	t.Parallel()
	worker := startScenario(t,
		map[string]any{"match": map[string]any{"last_message": "forever"}, "reply": map[string]any{"text": "on ", "then": "repeat"}})
	for event, err := range worker.Chat(within(t), chat("forever")) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Text() != "" {
			break
		}
	}
	expectIdle(t, worker)
	if stats, err := worker.Stats(within(t)); err != nil || stats.Requests.Cancelled != 1 {
		t.Errorf("%v: %+v", err, stats)
	}
}

// expectIdle waits until the worker has answered all requests before, and answers another.
func expectIdle(t *testing.T, worker *Worker) {
	t.Helper()
	if _, err := worker.ClearCache(within(t)); err != nil {
		t.Fatal(err)
	}
	response, err := worker.Complete(within(t), chat("still there"))
	if err != nil || response.Text != "still there" {
		t.Fatalf("%v: %+v", err, response)
	}
	for {
		reply, err := worker.Ping(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if reply.State == "idle" {
			return
		}
	}
}

func TestTheEndOfTheContextCancelsTheRequestAndNotTheWorker(t *testing.T) {
	t.Parallel()
	worker := startScenario(t,
		map[string]any{"match": map[string]any{"last_message": "forever"}, "reply": map[string]any{"text": "on ", "then": "wait"}})
	cause := errors.New("the window was closed")
	ctx, cancel := context.WithCancelCause(within(t))
	defer cancel(nil)
	var text string
	var failure error
	for event, err := range worker.Chat(ctx, chat("forever")) {
		if err != nil {
			failure = err
			break
		}
		text += event.Text()
		cancel(cause)
	}
	if !errors.Is(failure, cause) || !strings.Contains(failure.Error(), "`chat`") {
		t.Errorf("after %q the error is %v", text, failure)
	}
	expectIdle(t, worker)
}

func TestARequestWhoseContextHasEndedIsNotSent(t *testing.T) {
	t.Parallel()
	worker := startMock(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := worker.Complete(ctx, chat("hi")); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if stats, err := worker.Stats(within(t)); err != nil || stats.Requests.Accepted != 1 { // the load
		t.Errorf("%v: %+v", err, stats)
	}
}

func TestAStopKeepsTheAnswerSoFar(t *testing.T) {
	t.Parallel()
	worker := startScenario(t, map[string]any{"reply": map[string]any{"text": "so far", "then": "wait"}})
	stop := make(chan struct{})
	var accumulator Accumulator
	for event, err := range worker.Chat(within(t), chat("hi"), WithStop(stop)) {
		if err != nil {
			t.Fatal(err)
		}
		accumulator.Add(event)
		if response, _ := accumulator.Response(); response.Text == "so far" && response.Result == nil {
			close(stop)
		}
	}
	response, err := accumulator.Response()
	if err != nil || response.Text != "so far" || response.FinishReason != FinishCancelled {
		t.Errorf("%v: %+v", err, response.Answer)
	}
}

func TestTwoChatsRunAtOnceAndOneIsCancelled(t *testing.T) {
	t.Parallel()
	worker := startScenario(t,
		map[string]any{"match": map[string]any{"last_message": "forever"}, "reply": map[string]any{"text": "on ", "then": "repeat"}})
	for event, err := range worker.Chat(within(t), chat("forever")) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Text() != "" { // the first chat streams
			response, err := worker.Complete(within(t), chat("meanwhile"))
			if err != nil || response.Text != "meanwhile" {
				t.Errorf("%v: %+v", err, response)
			}
			break
		}
	}
	expectIdle(t, worker)
}

func TestAToolIsCalledAndItsResultIsSentBack(t *testing.T) {
	t.Parallel()
	worker := startScenario(t,
		map[string]any{"match": map[string]any{"last_message": "weather", "has": []string{"tools"}}, "reply": map[string]any{
			"tool_calls": []any{map[string]any{"name": "look_up", "arguments": map[string]any{"city": "Rome"}}}}},
		map[string]any{"match": map[string]any{"last_message": "degrees"}, "reply": map[string]any{"text": "Warm."}})
	params := chat("The weather?")
	params.Tools = []Tool{{Function: Function{Name: "look_up", Parameters: map[string]any{"type": "object"}}}}
	params.ToolChoice = ToolChoiceRequired
	response, err := worker.Complete(within(t), params)
	if err != nil {
		t.Fatal(err)
	}
	if response.FinishReason != FinishToolCalls || len(response.ToolCalls) != 1 {
		t.Fatalf("%+v", response.Answer)
	}
	call := response.ToolCalls[0]
	if call.Name != "look_up" || string(call.Arguments) != `{"city": "Rome"}` && string(call.Arguments) != `{"city":"Rome"}` {
		t.Errorf("the call is %+v", call)
	}
	params.Messages = append(params.Messages, response.Message(), call.Result("30 degrees"))
	params.ToolChoice = ToolChoice{}
	response, err = worker.Complete(within(t), params)
	if err != nil || response.Text != "Warm." {
		t.Errorf("%v: %+v", err, response)
	}
}

func TestACallThatIsCutOffIsText(t *testing.T) {
	t.Parallel()
	worker := startScenario(t, map[string]any{"reply": map[string]any{
		"tool_calls": []any{map[string]any{"name": "look_up", "arguments": `{"city`}}}})
	params := chat("The weather?")
	params.Tools = []Tool{{Function: Function{Name: "look_up"}}}
	response, err := worker.Complete(within(t), params)
	if err != nil || len(response.ToolCalls) != 0 || !strings.Contains(response.Text, `{"city`) {
		t.Errorf("%v: %+v", err, response.Answer)
	}
}

func TestTheWorkerDescribesItself(t *testing.T) {
	t.Parallel()
	worker := start(t, mock())
	if _, err := worker.Info(within(t)); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("the error without a model is %v", err)
	}
	loaded, err := worker.Load(within(t), LoadParams{Path: "mock:load_steps=2,step_ms=1"})
	if err != nil {
		t.Fatal(err)
	}
	info, err := worker.Info(within(t))
	if err != nil || info.ModelType != loaded.ModelType || !slices.Contains(info.Capabilities, "chat") {
		t.Errorf("%v: %+v", err, info)
	}
	tokens, err := worker.Tokenize(within(t), TokenizeParams{Prompt: Ptr("to be or")})
	if err != nil || tokens.Count != 3 || len(tokens.IDs) != 3 || tokens.Text != "to be or" {
		t.Errorf("%v: %+v", err, tokens)
	}
	text, err := worker.Tokenize(within(t), TokenizeParams{TokenIDs: tokens.IDs})
	if err != nil || text.Text == "" || !slices.Equal(text.IDs, tokens.IDs) {
		t.Errorf("%v: %+v", err, text)
	}
	if _, err := worker.Unload(within(t)); err != nil {
		t.Error(err)
	}
	if hello := worker.Hello(); !strings.HasPrefix(hello.Worker, "lmwire ") || hello.PID != int64(worker.PID()) {
		t.Errorf("%+v", hello)
	}
}

func TestARefusedRequestHasACodeAndAField(t *testing.T) {
	t.Parallel()
	worker := startMock(t)
	params := chat("hi")
	params.Temperature = Ptr(-1.0)
	_, err := worker.Complete(within(t), params)
	var refused *RequestError
	if !errors.As(err, &refused) || !errors.Is(err, ErrInvalidRequest) || errors.Is(err, ErrBusy) {
		t.Fatalf("the error is %v", err)
	}
	if refused.Field != "temperature" || refused.Retryable || !strings.Contains(err.Error(), "invalid_request") {
		t.Errorf("%+v", refused)
	}
}

func TestARequestThatJSONCannotHoldIsNotSent(t *testing.T) {
	t.Parallel()
	worker := startMock(t)
	params := chat("hi")
	params.TemplateArgs = map[string]any{"f": func() {}}
	if _, err := worker.Complete(within(t), params); err == nil || !strings.Contains(err.Error(), "cannot be sent") {
		t.Errorf("the error is %v", err)
	}
	expectIdle(t, worker)
}

func TestAFeatureThatTheWorkerLacksIsNotSent(t *testing.T) {
	t.Parallel()
	worker := startMock(t)
	_, err := worker.Load(within(t), LoadParams{Path: "mock", KVBits: 4}) // which the mock does not list
	var unsupported *UnsupportedError
	if !errors.As(err, &unsupported) || !errors.Is(err, ErrUnsupported) || !slices.Equal(unsupported.Features, []string{"load.kv_bits"}) {
		t.Errorf("the error is %v", err)
	}
}

func TestShutdownLetsRequestsEnd(t *testing.T) {
	t.Parallel()
	worker := startScenario(t, map[string]any{"reply": map[string]any{"tokens": []any{"a ", map[string]any{"text": "b", "delay_ms": 100}}}})
	var text strings.Builder
	ended := make(chan struct{})
	for event, err := range worker.Chat(within(t), chat("hi")) {
		if err != nil {
			t.Fatal(err)
		}
		if text.Len() == 0 && event.Text() != "" {
			go func() { defer close(ended); worker.Shutdown(context.Background()) }()
		}
		text.WriteString(event.Text())
	}
	await(t, ended)
	if text.String() != "a b" {
		t.Errorf("the answer is %q", text.String())
	}
}

func TestAClosedWorkerIsGone(t *testing.T) {
	t.Parallel()
	worker := startMock(t)
	if worker.Err() != nil {
		t.Errorf("a running worker has the error %v", worker.Err())
	}
	worker.Close()
	worker.Close()
	await(t, worker.Done())
	if _, err := worker.Info(within(t)); !errors.Is(err, ErrWorkerLost) || !errors.Is(worker.Err(), ErrWorkerLost) {
		t.Errorf("the error is %v", err)
	}
}
