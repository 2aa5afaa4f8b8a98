package lmwire

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// events makes a request when it is ranged over, and yields its events: pointers to the types of events.go and, last, to
// the command's `done`. To break cancels the request, and so does the end of the context.
func (w *Worker) events(ctx context.Context, command string, params any, options []RequestOption) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		var config requestConfig
		for _, option := range options {
			option(&config)
		}
		if err := context.Cause(ctx); err != nil {
			yield(nil, requestError(command, err))
			return
		}
		fields, err := w.encode(command, params)
		if err != nil {
			yield(nil, err)
			return
		}
		q := newQueue(w.connection.config.queueLimit)
		id, err := w.connection.send(command, fields, q)
		if err != nil {
			yield(nil, err)
			return
		}
		defer w.connection.abandon(id) // does nothing after the terminal
		w.deliver(ctx, command, id, q, config, yield)
	}
}

func (w *Worker) deliver(ctx context.Context, command, id string, q *queue, config requestConfig, yield func(any, error) bool) {
	for {
		events, ended, err := q.take()
		for _, event := range events {
			if progress, ok := event.(*Progress); ok && config.onProgress != nil {
				config.onProgress(*progress)
			}
			if !yield(event, nil) {
				return
			}
		}
		if ended {
			if err != nil {
				yield(nil, err)
			}
			return
		}
		select {
		case <-q.ready:
		case <-config.stop:
			w.connection.cancel(id)
			config.stop = nil
		case <-ctx.Done():
			yield(nil, requestError(command, context.Cause(ctx)))
			return
		}
	}
}

// requestError returns the error of a request whose context has ended. errors.Is finds the cause in it.
func requestError(command string, cause error) error {
	return fmt.Errorf("lmwire: `%s` was cancelled: %w", command, cause)
}

// encode returns the JSON of a command's fields, if the worker serves all of them.
func (w *Worker) encode(command string, params any) ([]byte, error) {
	fields, err := encode(params)
	if err != nil {
		return nil, fmt.Errorf("lmwire: `%s` cannot be sent: %w", command, err)
	}
	if missing := w.features.missing(command, fields); len(missing) > 0 {
		return nil, &UnsupportedError{Worker: w.hello.Worker, Features: missing}
	}
	return fields, nil
}

// call makes a request that has one result, and calls onEvent with the events before it.
func call[Done any](
	ctx context.Context, w *Worker, command string, params any, options []RequestOption, onEvent func(any) error,
) (*Done, error) {
	for event, err := range w.events(ctx, command, params, options) {
		if err != nil {
			return nil, err
		}
		if done, ok := event.(*Done); ok {
			return done, nil
		}
		if onEvent != nil {
			if err := onEvent(event); err != nil {
				return nil, err
			}
		}
	}
	return nil, errors.New("lmwire: the request ended without a result") // its queue always ends with one
}

// answer makes a request whose events are those of an answer.
func (w *Worker) answer(ctx context.Context, command string, params any, options []RequestOption) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for event, err := range w.events(ctx, command, params, options) {
			if err != nil {
				yield(nil, err)
				return
			}
			if event, ok := event.(Event); ok && !yield(event, nil) {
				return
			}
		}
	}
}
