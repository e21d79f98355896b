// Package recording writes down what an operator sees and decides, so that a test can ask later
// whether other handlers would be called: kopftest.Replay.
//
// A recording is a file of lines in JSON. The first one describes the operator. Then there is a
// line for each resource, watch event, pass over an object, and attempt of a handler of changes.
//
// Values are replaced by hashes under a key that is made for the recording, and is forgotten
// with the process: equal values have equal hashes within one recording, and nothing can be
// guessed and compared. The structure remains readable: names of fields, keys of labels,
// annotations, and maps, kinds, resources, lengths of lists, booleans, nulls, zeros, and empty
// texts. So do values that are constants of filters, because handlers could not be selected
// otherwise, and the fields that the settings name. A hash has the form of its value: texts
// remain texts, numbers numbers, times times, and quantities quantities.
//
// For each decision, the recorder checks whether it is the same with the hashes. If not, because
// a filter calculates with values, the handlers in question are marked.
//
// This package carries no compatibility promise.
package recording
