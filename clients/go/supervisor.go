package lmwire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// DefaultStepLimit is the default of [Supervisor.StepLimit]. A step takes less than a second, or a few on a slow machine.
const DefaultStepLimit = 5 * time.Minute

// A Supervisor starts a new worker after one has died or hung, within limits. The zero value is ready to use. Set the
// fields before the first call of [Supervisor.Worker].
//
// The new worker starts when one is asked for, not when the old one dies. So a model that kills its worker is not loaded
// again and again while nobody waits. Requests of a dead worker fail with a [*LostError] and are not repeated: only the
// caller knows whether it has used half an answer.
type Supervisor struct {
	// Options are those of [Start].
	Options []Option
	// Setup prepares a started worker for requests: it loads the model.
	Setup func(ctx context.Context, worker *Worker) error
	// StepLimit is the time without progress after which a worker counts as hung, while a request waits. A load that
	// reports progress makes progress. 0 is [DefaultStepLimit]; a negative value turns it off.
	StepLimit time.Duration
	// Breaker forbids starts after several failures.
	Breaker Breaker

	lock    chan struct{} // holds one item while a caller works on what follows; made by init
	worker  *Worker
	stop    context.CancelFunc // of the watchdog
	watched chan struct{}      // closed at the watchdog's end
	once    sync.Once
}

// Worker returns the worker. If none is alive, it starts and sets up a new one first.
//
// The error is an [*UnavailableError] if too many workers have failed, and no start was tried.
func (s *Supervisor) Worker(ctx context.Context) (*Worker, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	if s.worker != nil && s.worker.Err() != nil {
		s.Breaker.failed(s.worker.Err())
		_ = s.end() // the next worker starts anyway
	}
	if s.worker != nil {
		return s.worker, nil
	}
	if err := s.Breaker.check(); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s.worker, nil
}

// Close ends the worker, as [Worker.Close] does.
func (s *Supervisor) Close() error {
	_ = s.acquire(context.Background()) // which does not end
	defer s.release()
	return s.end()
}

func (s *Supervisor) acquire(ctx context.Context) error {
	s.once.Do(func() { s.lock = make(chan struct{}, 1) })
	select {
	case s.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Supervisor) release() { <-s.lock }

func (s *Supervisor) start(ctx context.Context) (err error) {
	s.worker, err = Start(ctx, s.Options...)
	if err == nil {
		s.watch()
		if s.Setup != nil {
			err = s.Setup(ctx, s.worker)
		}
	}
	if err == nil {
		return nil
	}
	var start *StartError
	if ctx.Err() == nil && (errors.As(err, &start) || errors.Is(err, ErrWorkerLost)) {
		s.Breaker.failed(err)
	}
	_ = s.end() // the failure matters more
	return err
}

// watch starts the watchdog of the worker.
func (s *Supervisor) watch() {
	limit := s.StepLimit
	if limit == 0 {
		limit = DefaultStepLimit
	}
	ctx, cancel := context.WithCancel(context.Background())
	watched := make(chan struct{})
	s.stop, s.watched = cancel, watched
	go func() {
		defer close(watched)
		if limit > 0 {
			watchdog{worker: s.worker, limit: limit}.run(ctx)
		}
	}()
}

func (s *Supervisor) end() error {
	if s.worker == nil {
		return nil
	}
	s.stop()
	err := s.worker.Close()
	<-s.watched
	s.worker = nil
	return err
}

// A Breaker forbids the start of a worker for a while after several failures. Each further failure within the window
// doubles that time. A field that is 0 has its default.
type Breaker struct {
	Limit      int           // Failures that open the breaker. The default is 3.
	Window     time.Duration // Time within which they happen. The default is 1 minute.
	Backoff    time.Duration // How long starts are forbidden at first. The default is 5 s.
	MaxBackoff time.Duration // How long starts are forbidden at most. The default is 5 minutes.

	now      func() time.Time
	failures []time.Time
	backoff  time.Duration
	last     error
}

// An UnavailableError reports that workers failed too often, and that none is started for a while.
type UnavailableError struct {
	Failures   int
	RetryAfter time.Duration
	Err        error // The last failure.
}

// Error returns one sentence.
func (e *UnavailableError) Error() string {
	wait := e.RetryAfter.Round(time.Second)
	return fmt.Sprintf("lmwire: the worker failed %d times in short order; it can be tried again in %v: %v", e.Failures, wait, e.Err)
}

// Unwrap returns the last failure.
func (e *UnavailableError) Unwrap() error { return e.Err }

func (b *Breaker) time() time.Time {
	if b.now != nil {
		return b.now()
	}
	return time.Now()
}

// failed records that a worker has died, or failed to start.
func (b *Breaker) failed(err error) {
	limit := cmp.Or(b.Limit, 3)
	b.last = err
	b.failures = append(b.failures, b.time())
	b.failures = b.failures[max(0, len(b.failures)-limit):]
	if len(b.failures) == limit && b.failures[limit-1].Sub(b.failures[0]) <= cmp.Or(b.Window, time.Minute) {
		b.backoff = min(max(cmp.Or(b.Backoff, 5*time.Second), 2*b.backoff), cmp.Or(b.MaxBackoff, 5*time.Minute))
	} else {
		b.backoff = 0
	}
}

// check returns an error if a start is forbidden.
func (b *Breaker) check() error {
	if b.backoff == 0 {
		return nil
	}
	wait := b.failures[len(b.failures)-1].Add(b.backoff).Sub(b.time())
	if wait <= 0 {
		return nil
	}
	return &UnavailableError{Failures: len(b.failures), RetryAfter: wait, Err: b.last}
}
