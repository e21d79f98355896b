package function

import (
	"reflect"
	"testing"
	"unsafe"
)

type bound struct{ name string }

func (b *bound) call() {}

func unbound() {}

// A version of Go that lays function values out differently fails here, before handlers
// are merged or separated by mistake.
func TestFunctionLayout(t *testing.T) {
	one := &bound{name: "one"}
	method, function := one.call, unbound
	for name, fn := range map[string]*func(){"a method value": &method, "a function": &function} {
		record := *(*unsafe.Pointer)(unsafe.Pointer(fn))
		if code := *(*uintptr)(record); code != reflect.ValueOf(*fn).Pointer() {
			t.Errorf("the record of %s begins with %x instead of the address of its code %x", name, code, reflect.ValueOf(*fn).Pointer())
		}
	}
	if got := receiver(*(*unsafe.Pointer)(unsafe.Pointer(&method))); got != unsafe.Pointer(one) {
		t.Errorf("the record of the method value has the receiver %p, want %p", got, one)
	}
	if again := IdentityOf(one.call); again != IdentityOf(method) {
		t.Error("two evaluations of one method value differ")
	}
	if IdentityOf(one.call) == IdentityOf((&bound{name: "two"}).call) {
		t.Error("the methods of two receivers have one identity")
	}
}
