package function

import (
	"reflect"
	"strings"
	"unsafe"
)

// Identity identifies a function together with what it is bound to. Methods of different
// receivers, and closures over different variables, have the same code but do different
// things.
type Identity struct {
	code  uintptr
	value unsafe.Pointer
}

// IdentityOf returns the identity of a function. Go compares functions only with nil, so
// IdentityOf reads the layout of function values, which TestFunctionLayout checks:
//
//	function value ──> record ──> address of the code
//	                              receiver, if the function is a method value
//	                              captured variables, if it is a closure
//
// A function that is bound to nothing has one record. Every evaluation of a method value
// or a closure makes another record. Two evaluations of x.Method are still one handler if
// x is the same pointer, so the receiver identifies them instead of the record.
func IdentityOf(fn any) Identity {
	function := reflect.ValueOf(fn)
	variable := reflect.New(function.Type())
	variable.Elem().Set(function)
	record := *(*unsafe.Pointer)(variable.UnsafePointer())
	id := Identity{code: function.Pointer(), value: record}
	if name := localSymbol(fn); record != nil && strings.Contains(name, ".(*") && strings.HasSuffix(name, "-fm") {
		id.value = receiver(record)
	}
	return id
}

// receiver returns the pointer that follows the address of the code in a method value's
// record.
func receiver(record unsafe.Pointer) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Add(record, unsafe.Sizeof(record)))
}

// SameCode reports whether both functions have the same code, whatever they are bound to.
func (i Identity) SameCode(other Identity) bool { return i.code == other.code }
