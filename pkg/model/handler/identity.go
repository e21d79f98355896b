package handler

import (
	"reflect"
	"strings"
	"unsafe"
)

// identity tells functions apart, and two values of one function too: methods of
// different receivers, or closures over different variables, have the same code
// and do different things.
type identity struct {
	code  uintptr
	value unsafe.Pointer
}

// identityOf looks behind the language, which compares functions with nil only.
// A function value points to a record in memory: the address of the code, then
// what the function carries along. One function without anything to carry has
// one such record; every other evaluation makes a new one. So two evaluations of
// x.Method would differ, if it were not for the receiver, which comes next to
// the code; where that is a pointer, it is what matters.
func identityOf(fn any) identity {
	function := reflect.ValueOf(fn)
	variable := reflect.New(function.Type())
	variable.Elem().Set(function)
	record := *(*unsafe.Pointer)(variable.UnsafePointer())
	id := identity{code: function.Pointer(), value: record}
	if name := symbol(fn); record != nil && strings.Contains(name, ".(*") && strings.HasSuffix(name, "-fm") {
		id.value = *(*unsafe.Pointer)(unsafe.Add(record, unsafe.Sizeof(record)))
	}
	return id
}
