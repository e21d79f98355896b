# `make help` lists the targets. Nothing is needed but Go and git: the tools are
# Go modules, built when they are first used. GOFLAGS and other variables of the
# environment apply as usual.

EXAMPLE   ?= 01-minimal
PACKAGES  ?= ./...
TIMEOUT   ?= 15m
FUZZTIME  ?= 10s
SMOKETIME ?= 3s
ARGS      ?=
TESTFLAGS ?=

LINTER := go tool -modfile=hack/tools/go.mod golangci-lint
# Used in recipes as $(WITH_ASSETS) command.
WITH_ASSETS = assets=$$(go run ./hack/envtest --print) && KUBEBUILDER_ASSETS="$$assets"

.SHELLFLAGS := -euc
.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##/ { printf "\n%s\n", substr($$0, 4) } \
		/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@printf '\nVariables, with their values: EXAMPLE=%s PACKAGES=%s TIMEOUT=%s FUZZTIME=%s,\nand ARGS and TESTFLAGS, which are added to the command line.\n' \
		'$(EXAMPLE)' '$(PACKAGES)' '$(TIMEOUT)' '$(FUZZTIME)'

## Try it

# The program replaces the shell, so that Ctrl-C and SIGTERM reach it directly.
.PHONY: run
run: ## Run EXAMPLE on the cluster of your kubeconfig, or on one of its own; ARGS go to the operator
	@go build -o bin/dev ./hack/dev
	@exec bin/dev $(EXAMPLE) $(ARGS)

## Test it

.PHONY: test
test: envtest-assets ## Run all tests, those on a real API server included (PACKAGES, TESTFLAGS)
ifeq ($(PACKAGES),./...)
	@hack/fuzz.sh $(SMOKETIME) ./pkg/webhook # what comes from the network, for a moment; make fuzz does it for longer
endif
	@echo "go test -timeout $(TIMEOUT) $(TESTFLAGS) $(PACKAGES)"
	@$(WITH_ASSETS) go test -timeout $(TIMEOUT) $(TESTFLAGS) $(PACKAGES)

.PHONY: test-race
test-race: override TESTFLAGS += -race
test-race: test ## The same under the race detector, which needs a C compiler

.PHONY: fuzz
fuzz: ## Fuzz every target in PACKAGES, for FUZZTIME each
	@hack/fuzz.sh $(FUZZTIME) $(PACKAGES)

.PHONY: bench
bench: envtest-assets ## Run the benchmarks, the comparison with a hand-written reconciler, and that of daemons and timers (ARGS)
	go test -run '^$$' -bench . -benchmem $(TESTFLAGS) ./pkg/...
	@$(WITH_ASSETS) go run ./test/bench $(ARGS)

.PHONY: envtest-assets
envtest-assets: ## Build kube-apiserver and etcd, unless they are in KUBEBUILDER_ASSETS or in your cache
	@go run ./hack/envtest

## Change it

.PHONY: fmt
fmt: ## Format all sources
	$(LINTER) fmt

.PHONY: lint
lint: ## Run the linters
	$(LINTER) run --allow-parallel-runners

.PHONY: manifests
manifests: ## Regenerate what is generated from the sources
	go generate ./...

.PHONY: verify
verify: ## Check all that is no test: vet, linters and format, tidy modules, manifests, regenerated files
	@hack/verify.sh
