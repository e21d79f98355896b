package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// residentSteps returns the steps for an operator with many objects that are handled already and never change. What
// is measured is the work on others.
func residentSteps(m *measurement) []step {
	steps := []step{
		{"start", m.start},
		{"template", m.template},
		{"resident", m.createResidents},
		{"restart", m.restart},
		{"first change", m.firstChange},
		{"warm up", m.warm},
	}
	return append(steps, changeSteps(m)[2:5]...)
}

// firstResident is the number of the first one, above those of all other objects.
const firstResident = 1_000_000

// template reads an object that the operator has handled.
func (m *measurement) template(ctx context.Context) error {
	if err := m.runBurst(ctx, m.creation(1)); err != nil {
		return err
	}
	if _, err := m.operator.quiet(ctx); err != nil {
		return err
	}
	text, err := m.load.about(m.load.api.Get()).Name(name(1)).Do(ctx).Raw()
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return err
	}
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	if m.handled, err = json.Marshal(object.Object); err != nil {
		return err
	}
	return m.runBurst(ctx, m.deletion(1))
}

// createResidents creates handled objects.
func (m *measurement) createResidents(ctx context.Context) error {
	if _, err := m.operator.quiet(ctx); err != nil {
		return err
	}
	return m.load.each(ctx, m.resident, func(ctx context.Context, number int) error {
		body := bytes.ReplaceAll(m.handled, []byte(name(1)), []byte(name(firstResident+number)))
		if err := m.load.about(m.load.api.Post()).Body(body).Do(ctx).Error(); err != nil {
			return fmt.Errorf("a resident: %w", err)
		}
		return nil
	})
}

// firstChange restarts the operator, and creates an object at once when it is ready: the residents still wait to be looked at.
func (m *measurement) firstChange(ctx context.Context) error {
	if err := m.operator.stop(); err != nil {
		return err
	}
	if err := m.start(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := m.runBurst(ctx, m.creation(1)); err != nil {
		return err
	}
	m.figures.Restart.FirstChange = time.Since(began)
	if _, err := m.operator.quiet(ctx); err != nil {
		return err
	}
	return m.runBurst(ctx, m.deletion(1))
}
