package lmwire

import (
	"context"
	"time"
)

// checks without progress mean a hang, so the limit is accurate to one eighth.
const checks = 8

// A watchdog ends a worker that makes no progress while requests wait for it. It counts checks and does not subtract
// times: after a machine slept for an hour, or the host was stopped, only one check was missed.
type watchdog struct {
	worker *Worker
	limit  time.Duration
}

// run checks the worker at intervals, until it is gone or the context ends.
func (d watchdog) run(ctx context.Context) {
	interval := d.limit / checks
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	idle, last := 0, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.worker.Done():
			return
		case <-ticker.C:
		}
		started := time.Now()
		if !d.worker.connection.busy() || d.progresses(ctx, interval, time.Since(last)) {
			idle = 0
		} else if idle++; idle >= checks && ctx.Err() == nil {
			d.worker.connection.abort(ErrHung)
			return
		}
		last = started
	}
}

// progresses returns whether the worker answers, and has made a step since the check before, or need not make one.
func (d watchdog) progresses(ctx context.Context, timeout, since time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reply, err := d.worker.Ping(ctx)
	if err != nil {
		return false
	}
	switch reply.State {
	case "idle", "paused", "draining":
		return true
	default:
		return reply.StepAgeMS == nil || *reply.StepAgeMS < float64(since.Milliseconds())
	}
}
