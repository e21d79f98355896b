// Package docs checks what the documentation shows: every listing of Go is compiled,
// every YAML and JSON listing is parsed, and every command is checked.
//
// A listing of Go is a whole file, declarations, statements, or declarations between
// statements. It may use what earlier listings of the same page declare, unless it
// declares that itself. A comment adds declarations that readers do not see, for the
// listings after it:
//
//	<!-- go
//	func provision(ctx context.Context, size string) error { return nil }
//	-->
//
// Imports are added as needed, from the list in imports_test.go or from such a comment.
// Statements can use ctx, and need not use their variables. A line that is only "…"
// stands for code that is left out. Only a listing with a package clause and imports must
// be complete.
//
// A block without a language is a list of commands, as is one of the language console,
// where only the lines after "$ " are commands. Blocks of the language text are output.
package docs
