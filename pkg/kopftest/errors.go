package kopftest

import "errors"

// errCut is the error of requests after a crash.
var errCut = errors.New("the operator has crashed")
