#!/usr/bin/env node
// Only what every Node has is imported before its version is known: an older one must get a message, not fail on a name.
import './base/kernel/no-debugger.ts'
import module from 'node:module'
import { collectSoon, startWithAllocator } from './serve/processes/allocator.ts'
import { isNewEnough, tooOld } from './serve/parts/version.ts'

/** Time after the work, mostly for the last lines of the log. */
const LEFTOVERS_MS = 2000

if (isNewEnough(process.versions.node)) {
  startWithAllocator(process)
  collectSoon(process.versions)
  // Before anything else is imported, so that the second start finds every module compiled: a third of the start time.
  module.enableCompileCache()
  const { runCommandLine } = await import('./cli/command-line.ts')
  process.exitCode = await runCommandLine(process.argv.slice(2), process)
  // A timer or a connection that a module left open must not keep the process, nor a disk that stands.
  setTimeout(() => process.exit(), LEFTOVERS_MS).unref()
} else {
  process.stderr.write(tooOld(process.versions.node))
  process.exitCode = 2
}
