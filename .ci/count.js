/**
 * Reads the JSON reports of the test runs and prints, as the last thing CI says, each failed test with its message
 * and the line `N passed, N failed`. Whoever sees only the end of the output knows what failed.
 *
 * Called as `node .ci/count.js REPORT…`; exits with 1 if anything failed.
 */
import { readFileSync } from 'node:fs'

/**
 * Characters of one message's beginning, and of its end, where the log of a service stands: the difference of two large
 * answers would push the other failures out of sight.
 */
const SHOWN_LENGTH = 1500

let [passed, failed] = [0, 0]

for (const path of process.argv.slice(2)) {
  const report = read(path)
  if (report === undefined) {
    tell(path, 'The run broke off before it wrote this report: see above.')
    continue
  }
  passed += report.numPassedTests
  const before = failed
  for (const file of report.testResults) {
    const tests = file.assertionResults.filter((test) => test.status === 'failed')
    for (const test of tests) tell(`${file.name}: ${test.fullName}`, test.failureMessages.join('\n'))
    // A file that cannot be loaded fails without a failed test.
    if (tests.length === 0 && file.status === 'failed') tell(file.name, file.message)
  }
  // An error outside every test.
  if (!report.success && failed === before)
    tell(path, 'The run failed, and none of its tests did: see above.')
}

console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

function read(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

/** Counts a failure and prints it, without the lines of the stack that lie in libraries. */
function tell(title, message) {
  failed += 1
  const own = message.replaceAll(/\n +at .*(?:node_modules|node:|new Promise).*/g, '')
  const short =
    own.length > 2 * SHOWN_LENGTH ? `${own.slice(0, SHOWN_LENGTH)}…${own.slice(-SHOWN_LENGTH)}` : own
  console.log(`FAILED: ${title}\n  ${short.replaceAll('\n', '\n  ')}`)
}
