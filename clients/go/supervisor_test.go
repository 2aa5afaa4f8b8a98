package lmwire

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// supervise returns a supervisor of mock workers.
func supervise(t *testing.T, options ...Option) *Supervisor {
	t.Helper()
	if !hasWorker {
		t.Skip("lmwire is not on PATH")
	}
	supervisor := &Supervisor{
		Options: options,
		Setup: func(ctx context.Context, worker *Worker) error {
			_, err := worker.Load(ctx, LoadParams{})
			return err
		},
	}
	t.Cleanup(func() { supervisor.Close() })
	return supervisor
}

func TestASupervisorStartsANewWorkerWhenOneIsAskedForAfterADeath(t *testing.T) {
	t.Parallel()
	supervisor := supervise(t, mock("--fault", "crash-mid-stream:after=1"))
	first, err := supervisor.Worker(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Complete(within(t), chat("a b c")); !errors.Is(err, ErrWorkerLost) {
		t.Errorf("the error is %v", err)
	}
	second, err := supervisor.Worker(within(t))
	if err != nil || second == first || second.Err() != nil {
		t.Fatalf("%v: %v", err, second)
	}
	if again, _ := supervisor.Worker(within(t)); again != second {
		t.Error("a worker that is alive was replaced")
	}
	if info, err := second.Info(within(t)); err != nil {
		t.Errorf("the setup did not run: %v: %v", err, info)
	}
}

func TestASupervisorStopsStartingWorkersThatFail(t *testing.T) {
	t.Parallel()
	supervisor := supervise(t, mock("--fault", "crash-start"))
	supervisor.Breaker = Breaker{Window: time.Hour, Backoff: time.Hour}
	var unavailable *UnavailableError
	for range 3 {
		if _, err := supervisor.Worker(within(t)); err == nil || errors.As(err, &unavailable) {
			t.Fatalf("the error is %v", err)
		}
	}
	_, err := supervisor.Worker(within(t))
	var failed *StartError
	if !errors.As(err, &unavailable) || !errors.As(err, &failed) || unavailable.RetryAfter <= 0 {
		t.Errorf("the error is %v", err)
	}
}

func TestASetupThatFailsDoesNotCountAsAFailureOfTheWorker(t *testing.T) {
	t.Parallel()
	supervisor := supervise(t, mock())
	problem := errors.New("no such file")
	supervisor.Setup = func(context.Context, *Worker) error { return problem }
	for range 5 { // more than the breaker allows
		if _, err := supervisor.Worker(within(t)); !errors.Is(err, problem) {
			t.Fatalf("the error is %v", err)
		}
	}
}

func TestACallerDoesNotWaitLongerThanItsContext(t *testing.T) {
	t.Parallel()
	supervisor := supervise(t, mock())
	entered := make(chan struct{})
	leave := make(chan struct{})
	supervisor.Setup = func(context.Context, *Worker) error { close(entered); <-leave; return nil }
	ended := make(chan struct{})
	go func() { defer close(ended); supervisor.Worker(context.Background()) }()
	await(t, entered)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := supervisor.Worker(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	close(leave)
	await(t, ended)
}

func TestAWatchdogEndsAWorkerThatHangs(t *testing.T) {
	t.Parallel()
	hanging := scenario(t, map[string]any{"match": map[string]any{"cmd": "load"}, "reply": map[string]any{"then": "hang"}})
	supervisor := supervise(t, mock("--scenario", hanging), impatient)
	supervisor.Setup = nil // the only request is the one that hangs, since a slow one would look like it
	supervisor.StepLimit = 400 * time.Millisecond
	worker, err := supervisor.Worker(within(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = worker.Load(within(t), LoadParams{})
	if !errors.Is(err, ErrHung) || !errors.Is(err, ErrWorkerLost) || !strings.Contains(err.Error(), "no progress") {
		t.Errorf("the error is %v", err)
	}
	await(t, worker.Done())
	if next, err := supervisor.Worker(within(t)); err != nil || next == worker {
		t.Errorf("%v: the worker was not replaced", err)
	}
}

func TestTheBreakerDoublesItsTimeUpToALimit(t *testing.T) {
	t.Parallel()
	now := time.Now()
	breaker := Breaker{Limit: 2, Window: time.Minute, Backoff: 2 * time.Second, MaxBackoff: 5 * time.Second, now: func() time.Time { return now }}
	problem := errors.New("exit code 70")
	expect := func(wait time.Duration) {
		t.Helper()
		var unavailable *UnavailableError
		err := breaker.check()
		if wait == 0 && err != nil || wait > 0 && (!errors.As(err, &unavailable) || unavailable.RetryAfter != wait || !errors.Is(err, problem)) {
			t.Errorf("the error is %v, and the time should be %v", err, wait)
		}
	}
	expect(0)
	breaker.failed(problem)
	expect(0)
	for _, wait := range []time.Duration{2 * time.Second, 4 * time.Second, 5 * time.Second} {
		breaker.failed(problem)
		expect(wait)
		now = now.Add(wait)
		expect(0)
	}
	now = now.Add(time.Hour)
	breaker.failed(problem) // the first within the window
	expect(0)
}
