package handler

import (
	"github.com/kopf-go/kopf/pkg/model/selector"
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

// Daemon declares a function that accompanies every object.
func Daemon(sel selector.Selector, fn Function, options ...DaemonOption) (*Declaration, error) {
	return declare(OnDaemon, sel, fn, options, DaemonOption.daemon)
}

// Timer declares a function that is called for every object again and again.
func Timer(sel selector.Selector, fn Function, options ...TimerOption) (*Declaration, error) {
	return declare(OnTimer, sel, fn, options, TimerOption.timer)
}

// Index declares a function that fills an index from every object. Its errors are
// ignored by default: what is in the index stays as it is.
func Index(sel selector.Selector, fn Function, options ...IndexOption) (*Declaration, error) {
	options = append([]IndexOption{Errors(ErrorsIgnored)}, options...)
	return declare(OnIndex, sel, fn, options, IndexOption.index)
}

// ForOperator declares a handler of an activity: a kind that is of no object.
func ForOperator(kind Kind, fn Function, options ...ActivityOption) (*Declaration, error) {
	return declare(kind, selector.Selector{}, fn, options, ActivityOption.operator)
}

// Validate declares a function that checks objects before they are stored.
func Validate(sel selector.Selector, fn Function, options ...AdmissionOption) (*Declaration, error) {
	return declare(OnValidate, sel, fn, options, AdmissionOption.admission)
}

// Mutate declares a function that changes objects before they are stored.
func Mutate(sel selector.Selector, fn Function, options ...AdmissionOption) (*Declaration, error) {
	return declare(OnMutate, sel, fn, options, AdmissionOption.admission)
}

func newSubhandler(id string, fn ChangeFunc, options []SubhandlerOption) (*Declaration, error) {
	options = append([]SubhandlerOption{ID(id)}, options...)
	return declare(Subhandler, selector.Selector{}, Function{Change: fn}, options, SubhandlerOption.subhandler)
}
