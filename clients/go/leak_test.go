package lmwire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	atOnce        = 32
	totalRequests = 1000
)

func TestAThousandRequestsWithRandomCancelsLeaveNothingBehind(t *testing.T) {
	before := descriptors(t)
	worker := startScenario(t,
		map[string]any{"match": map[string]any{"last_message": "forever"}, "reply": map[string]any{"text": "on and ", "then": "repeat"}})
	var next, cancelled, whole atomic.Int64
	var clients sync.WaitGroup
	for client := range atOnce {
		random := rand.New(rand.NewPCG(1, uint64(client)))
		clients.Go(func() {
			for number := next.Add(1); number <= totalRequests; number = next.Add(1) {
				if random.IntN(2) == 0 {
					cancelOne(t, worker, random)
					cancelled.Add(1)
				} else if text := fmt.Sprintf("request %d of all", number); finishOne(t, worker, text) {
					whole.Add(1)
				}
			}
		})
	}
	clients.Wait()
	if cancelled.Load()+whole.Load() != totalRequests {
		t.Errorf("%d requests were cancelled, and %d ended", cancelled.Load(), whole.Load())
	}
	waitForIdle(t, worker)
	pid := worker.PID()
	worker.Close()
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); runtime.GOOS == "linux" && err == nil {
		t.Error("the process is still there")
	}
	expectNoGoroutines(t)
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors were open before, and %d are after", before, after)
	}
}

// cancelOne ends a chat that would never end, in one of the ways to do that.
func cancelOne(t *testing.T, worker *Worker, random *rand.Rand) {
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	stop := make(chan struct{})
	way, events := random.IntN(3), 1+random.IntN(5)
	for event, err := range worker.Chat(ctx, chat("forever"), WithStop(stop)) {
		switch result, ended := event.(*Result); {
		case way == 1 && errors.Is(err, context.Canceled), way == 2 && ended && result.FinishReason == FinishCancelled:
			return
		case err != nil || ended:
			t.Errorf("%v: the answer ended by itself: %+v", err, result)
			return
		}
		if events--; events != 0 {
			continue
		}
		switch way {
		case 0:
			return
		case 1:
			cancel()
		case 2:
			close(stop)
		}
	}
	t.Error("the events ended without a terminal")
}

func finishOne(t *testing.T, worker *Worker, text string) bool {
	response, err := worker.Complete(within(t), chat(text))
	if err != nil || response.Text != text {
		t.Errorf("%v: %+v", err, response)
		return false
	}
	return true
}

// waitForIdle waits until the worker has ended all requests, those included that nobody reads.
func waitForIdle(t *testing.T, worker *Worker) {
	t.Helper()
	ctx := within(t)
	for worker.connection.busy() {
		if _, err := worker.Ping(ctx); err != nil {
			t.Fatal(err)
		}
	}
	worker.connection.mu.Lock()
	defer worker.connection.mu.Unlock()
	for id, request := range worker.connection.pending {
		if request.command != "cancel" {
			t.Errorf("the request %s, `%s`, is still in flight", id, request.command)
		}
	}
}

// expectNoGoroutines waits until no goroutine of a worker runs.
func expectNoGoroutines(t *testing.T) {
	t.Helper()
	ctx := within(t)
	for {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if !strings.Contains(string(stacks), "clients/go/internal/process.") && !strings.Contains(string(stacks), "(*connection).run") {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("goroutines remain:\n%s", stacks)
		}
		runtime.Gosched()
	}
}

// descriptors returns how many files this process has open, or 0 where that is not known.
func descriptors(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(files)
}
