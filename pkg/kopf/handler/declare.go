package handler

import (
	"github.com/kopf-go/kopf/pkg/kopf/selector"
)

// Create declares a handler of creations.
func Create(sel selector.Selector, fn Function, options ...CreateOption) (*Declaration, error) {
	return declare(OnCreate, sel, fn, options, CreateOption.create)
}

// Update declares a handler of updates.
func Update(sel selector.Selector, fn Function, options ...UpdateOption) (*Declaration, error) {
	return declare(OnUpdate, sel, fn, options, UpdateOption.update)
}

// Delete declares a handler of deletions.
func Delete(sel selector.Selector, fn Function, options ...DeleteOption) (*Declaration, error) {
	return declare(OnDelete, sel, fn, options, DeleteOption.delete)
}

// Resume declares a handler of objects that were there before the operator.
func Resume(sel selector.Selector, fn Function, options ...ResumeOption) (*Declaration, error) {
	return declare(OnResume, sel, fn, options, ResumeOption.resume)
}

// ForField declares a handler of one field, whatever happens to the object.
func ForField(sel selector.Selector, field []string, fn Function, options ...UpdateOption) (*Declaration, error) {
	options = append([]UpdateOption{Field(field...)}, options...)
	return declare(OnField, sel, fn, options, UpdateOption.update)
}

// Watch declares a handler of watch events.
func Watch(sel selector.Selector, fn Function, options ...EventOption) (*Declaration, error) {
	return declare(OnEvent, sel, fn, options, EventOption.event)
}

func newSubhandler(id string, fn ChangeFunc, options []SubhandlerOption) (*Declaration, error) {
	options = append([]SubhandlerOption{ID(id)}, options...)
	return declare(Subhandler, selector.Selector{}, Function{Change: fn}, options, SubhandlerOption.subhandler)
}
