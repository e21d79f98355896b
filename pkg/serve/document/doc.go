// Package document reads the files of kopf serve: which programs, workers, and services handle which
// objects, and how.
//
// A file is YAML or JSON. Its decoding is strict: an unknown word, a word at a wrong place, a value of a
// wrong type, and a word that is given twice are errors with the file, the line, and the nearest correct
// word. All mistakes of a file are reported together. One table of words, in declarations.go, is the truth
// for the decoder and for the JSON schema of editors, schema.json.
//
// A worker can declare its handlers itself. Its declarations have the same form, in JSON.
//
// The form of the files is promised.
//
// This package carries no compatibility promise.
package document
