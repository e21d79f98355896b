package kubebuilder

import (
	"fmt"
	"os"
	"path/filepath"
)

// Name is the name of the plugin. Its version is v1, and kubebuilder knows it as kopf/v1, too.
const Name = "kopf.dev"

// Install writes the plugin to the folder in which kubebuilder looks for plugins, and returns its path. It is a script that
// executes a command of the shell.
func Install(command string) (string, error) {
	plugins, err := pluginsFolder()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(plugins, Name, "v1")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // programs are no secrets
		return "", fmt.Errorf("the plugin cannot be installed: %w", err)
	}
	path := filepath.Join(dir, Name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec "+command+"\n"), 0o755); err != nil { //nolint:gosec // it is executed
		return "", fmt.Errorf("the plugin cannot be installed: %w", err)
	}
	return path, nil
}

// pluginsFolder returns the folder in which kubebuilder looks for plugins.
func pluginsFolder() (string, error) {
	if dir := os.Getenv("EXTERNAL_PLUGINS_PATH"); dir != "" {
		return dir, nil
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return "", fmt.Errorf("the folder for plugins of kubebuilder is unknown: %w; set EXTERNAL_PLUGINS_PATH", err)
		}
	}
	return filepath.Join(dir, "kubebuilder", "plugins"), nil
}
