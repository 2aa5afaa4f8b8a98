package lmwire

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// impatient are steps of a shutdown for workers that ignore them.
var impatient = WithShutdownTimeouts(ShutdownTimeouts{Quit: 50 * time.Millisecond, EOF: 50 * time.Millisecond, Term: 50 * time.Millisecond})

// startFaulty returns a mock worker with a fault, and a loaded model.
func startFaulty(t *testing.T, fault string, options ...Option) *Worker {
	t.Helper()
	worker := start(t, append(options, mock("--fault", fault))...)
	if _, err := worker.Load(within(t), LoadParams{}); err != nil {
		t.Fatal(err)
	}
	return worker
}

// read reads a chat to its end.
func read(t *testing.T, worker *Worker, text string) (string, error) {
	t.Helper()
	var read strings.Builder
	for event, err := range worker.Chat(within(t), chat(text)) {
		if err != nil {
			return read.String(), err
		}
		read.WriteString(event.Text())
	}
	return read.String(), nil
}

func TestARequestOfAKilledWorkerIsLostAndItsTextIsKept(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"crash-mid-stream:after=2", "crash-mid-line:after=3", "crash-mid-stream:after=2,exit=0"} {
		text, err := read(t, startFaulty(t, fault), "a b c d")
		var lost *LostError
		if !errors.As(err, &lost) || !errors.Is(err, ErrWorkerLost) || lost.Reason != nil || lost.State == nil || text != "a b " {
			t.Errorf("%s: after %q the error is %v", fault, text, err)
		}
	}
}

func TestALostErrorSaysHowTheWorkerEnded(t *testing.T) {
	t.Parallel()
	_, err := read(t, startFaulty(t, "crash-mid-stream:signal=KILL"), "a b c d e")
	if !strings.Contains(err.Error(), "killed") {
		t.Errorf("the error is %v", err)
	}
	_, err = read(t, startFaulty(t, "crash-mid-stream:exit=70"), "a b c d e")
	if !strings.Contains(err.Error(), "exit code 70") {
		t.Errorf("the error is %v", err)
	}
}

func TestAnAnswerThatCameBeforeTheDeathIsWhole(t *testing.T) {
	t.Parallel()
	worker := startFaulty(t, "crash-after-terminal")
	if text, err := read(t, worker, "a b"); err != nil || text != "a b" {
		t.Errorf("%v: %q", err, text)
	}
	await(t, worker.Done())
}

func TestAWorkerThatBreaksTheProtocolIsKilled(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"garbage-between-events", "garbage-half-line", "long-line"} {
		worker := startFaulty(t, fault)
		_, err := read(t, worker, "a b c")
		var violation *ProtocolError
		if !errors.As(err, &violation) || !errors.Is(err, ErrWorkerLost) || violation.Line == "" {
			t.Errorf("%s: the error is %v", fault, err)
		}
		await(t, worker.Done())
	}
}

func TestABannerBeforeHelloIsSkipped(t *testing.T) {
	t.Parallel()
	if text, err := read(t, startFaulty(t, "garbage-before-hello:bytes=60000"), "a b"); err != nil || text != "a b" {
		t.Errorf("%v: %q", err, text)
	}
}

func TestAFloodOnStderrStopsNothingAndItsEndIsKept(t *testing.T) {
	t.Parallel()
	lines := 0
	worker := startFaulty(t, "stderr-flood", WithStderr(func(string) { lines++ }))
	if text, err := read(t, worker, "a b"); err != nil || text != "a b" {
		t.Errorf("%v: %q", err, text)
	}
	worker.Close()
	if tail := worker.Stderr(); len(tail) != 64 || lines < 64 {
		t.Errorf("%d lines came, and %d are kept", lines, len(tail))
	}
}

func TestAGrandchildThatHoldsThePipesDelaysNothing(t *testing.T) {
	t.Parallel()
	worker := startFaulty(t, "grandchild")
	if text, err := read(t, worker, "a b"); err != nil || text != "a b" {
		t.Errorf("%v: %q", err, text)
	}
	worker.Close() // would take the grandchild's 60 s, or fail the test at the end of the process
	await(t, worker.Done())
}

func TestAWorkerThatNeverAnswersHelloIsAFailedStart(t *testing.T) {
	t.Parallel()
	if !hasWorker {
		t.Skip("lmwire is not on PATH")
	}
	_, err := Start(t.Context(), mock("--fault", "no-hello"), WithStartTimeout(time.Second))
	var failed *StartError
	if !errors.As(err, &failed) || !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "did not answer `hello` in 1s") {
		t.Errorf("the error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, mock()); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestAStartThatFailsSaysWhatToInstall(t *testing.T) {
	t.Parallel()
	if !hasWorker {
		t.Skip("lmwire is not on PATH")
	}
	for fault, sentence := range map[string]string{
		"newer-version":   "protocol 1; install lmwire " + Version,
		"wrong-version":   "protocol 1; install lmwire " + Version,
		"crash-start":     "does not start as a worker",
		"unknown-feature": "does not serve chat.dance; install lmwire " + Version,
	} {
		options := []Option{mock("--fault", fault)}
		if fault == "unknown-feature" {
			options = []Option{mock(), WithFeatures("chat.dance", "chat.tools")}
		}
		_, err := Start(within(t), options...)
		var failed *StartError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: the error is %v", fault, err)
		}
	}
	if _, err := Start(within(t), WithCommand("/nonexistent/lmwire")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

func TestABurstIsReadWhole(t *testing.T) {
	t.Parallel()
	tokens := 0
	for event, err := range startFaulty(t, "burst:tokens=50000").Chat(within(t), chat("a b")) {
		if err != nil {
			t.Fatal(err)
		}
		if token, ok := event.(*Token); ok {
			tokens += len(token.TokenIDs)
		}
	}
	if tokens != 50000 {
		t.Errorf("%d tokens came", tokens)
	}
}

func TestASlowConsumerLosesNothingAndDelaysNobody(t *testing.T) {
	t.Parallel()
	worker := startFaulty(t, "burst:tokens=20000")
	tokens, others := 0, 0
	for event, err := range worker.Chat(within(t), chat("slow")) {
		if err != nil {
			t.Fatal(err)
		}
		if others < 3 { // other requests run while this one's events wait
			others++
			if _, err := worker.Ping(within(t)); err != nil {
				t.Fatal(err)
			}
			if text, err := read(t, worker, "quick"); err != nil || text == "" {
				t.Errorf("%v: %d bytes", err, len(text))
			}
		}
		if token, ok := event.(*Token); ok {
			tokens += len(token.TokenIDs)
		}
	}
	if tokens != 20000 {
		t.Errorf("%d tokens came", tokens)
	}
}

func TestARequestWhoseEventsAreNotReadEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	worker := startFaulty(t, "burst:tokens=1000000", WithQueueLimit(100_000))
	var failure error
	bytes := 0
	for event, err := range worker.Chat(within(t), chat("slow")) {
		if err != nil {
			failure = err
			break
		}
		if bytes == 0 {
			waitForCancel(t, worker)
		}
		bytes += len(event.Text())
	}
	if !errors.Is(failure, ErrSlowConsumer) || bytes == 0 || bytes > 100_000 {
		t.Errorf("after %d bytes the error is %v", bytes, failure)
	}
	if _, err := worker.Info(within(t)); err != nil {
		t.Errorf("the worker is of no use: %v", err)
	}
}

// waitForCancel waits until the worker has ended a request by a cancel.
func waitForCancel(t *testing.T, worker *Worker) {
	t.Helper()
	for {
		stats, err := worker.Stats(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if stats.Requests.Cancelled > 0 {
			return
		}
	}
}

func TestEveryStepOfTheShutdownEndsTheWorkerThatNeedsIt(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"ignore-quit", "ignore-eof", "ignore-sigterm"} {
		worker := startFaulty(t, fault, impatient)
		worker.Close()
		await(t, worker.Done())
	}
}

func TestShutdownEndsAHungWorkerAfterItsContext(t *testing.T) {
	t.Parallel()
	worker := startFaulty(t, "stall:after=1", impatient)
	for event, err := range worker.Chat(within(t), chat("a b c")) {
		if err != nil {
			if !errors.Is(err, ErrWorkerLost) {
				t.Errorf("the error is %v", err)
			}
			break
		}
		if event.Text() != "" {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := worker.Shutdown(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
		}
	}
	await(t, worker.Done())
}

func TestUnusualEventsChangeNothing(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"duplicate-terminal", "event-after-terminal", "unknown-id", "unknown-event", "unknown-fields"} {
		if text, err := read(t, startFaulty(t, fault), "a b"); err != nil || text != "a b" {
			t.Errorf("%s: %v: %q", fault, err, text)
		}
	}
	response, err := startFaulty(t, "unknown-values").Complete(within(t), chat("a b"))
	if err != nil || response.FinishReason != FinishOther {
		t.Errorf("%v: %+v", err, response)
	}
}

func TestAFailedLoadSaysWhetherAModelIsLoaded(t *testing.T) {
	t.Parallel()
	_, err := start(t, mock("--fault", "failed-load")).Load(within(t), LoadParams{Path: "mock"})
	var refused *RequestError
	if !errors.As(err, &refused) || !errors.Is(err, ErrBadModel) || refused.Loaded == nil || *refused.Loaded {
		t.Errorf("the error is %v", err)
	}
}

func TestARequestOfAStalledWorkerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	worker := startFaulty(t, "stall:after=1", impatient)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	var text string
	var failure error
	for event, err := range worker.Chat(ctx, chat("a b c")) {
		if err != nil {
			failure = err
			break
		}
		if text += event.Text(); text != "" {
			cancel()
		}
	}
	if !errors.Is(failure, context.Canceled) || text == "" {
		t.Errorf("after %q the error is %v", text, failure)
	}
	if reply, err := worker.Ping(within(t)); err != nil || reply.State != "running" || reply.Active != 1 {
		t.Errorf("%v: %+v", err, reply)
	}
}
