// Package record reads and writes what the operator keeps on an object about the
// handling of its changes: the essence that was handled last (the diff base), the
// essence that the open cycle began with, and the progress of each handler.
//
// A Cycle is the part of one change's handling that lives on the object. Change
// detection fills it; the writer turns it into patches, again for each version of
// the object that it writes to. A Keeper does both on the storages of the settings.
//
// What cannot be read counts as absent: it is reported once per object, and the
// object is handled without it. Nothing here calls the API server.
//
// Specification: Continuity; Configuration, "Storing the progress" and "Change
// detection".
package record
