package main

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// database stands for any database that must be opened and closed. The handlers of many
// objects use it concurrently.
type database struct {
	mu   sync.Mutex
	rows map[string]string // nil: not open
}

var errClosed = errors.New("the database is not open")

func (d *database) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows = map[string]string{}
	return nil
}

// put sets a row, or removes it if the value is empty.
func (d *database) put(key, value string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.rows == nil:
		return errClosed
	case value == "":
		delete(d.rows, key)
	default:
		d.rows[key] = value
	}
	return nil
}

func (d *database) count() (int, error) {
	values, err := d.values()
	return len(values), err
}

// values returns the values of all rows, sorted.
func (d *database) values() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rows == nil {
		return nil, errClosed
	}
	return slices.Sorted(maps.Values(d.rows)), nil
}

// close returns the last number of rows.
func (d *database) close() (int, error) {
	count, err := d.count()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows = nil
	return count, err
}
