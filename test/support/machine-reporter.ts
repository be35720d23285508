/**
 * Tells at the start of a run what is missing on the machine, and at its end what was skipped and why, and which tests
 * needed a second attempt.
 */
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { isMissing, PARTS, type PartName } from './machine.ts'

const missing = (Object.keys(PARTS) as PartName[]).filter(isMissing)

export default class MachineReporter implements Reporter {
  onInit(): void {
    if (missing.length === 0) return
    console.log('Missing on this machine:')
    for (const name of missing) console.log(`  ${name}: ${PARTS[name].use}`)
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = new Map<string, number>()
    for (const module of modules)
      for (const test of module.children.allTests('skipped')) {
        const line = `${module.relativeModuleId}: ${reason(test)}`
        counts.set(line, (counts.get(line) ?? 0) + 1)
      }
    if (counts.size > 0) console.log('Skipped:')
    for (const [line, count] of counts) console.log(`  ${count} of ${line}`)

    const flaky = modules.flatMap((module) =>
      [...module.children.allTests('passed')].filter((test) => test.diagnostic()?.flaky),
    )
    if (flaky.length > 0) console.log('Passed only at the second attempt:')
    for (const test of flaky) console.log(`  ${test.module.relativeModuleId}: ${test.fullName}`)
  }
}

function reason(test: TestCase): string {
  const result = test.result()
  if (result.state === 'skipped' && result.note !== undefined) return result.note
  const { needs = [] } = test.meta()
  const lacks = needs.filter(isMissing)
  return lacks.length > 0 ? `${lacks.join(' and ')} missing` : 'not chosen by this run'
}
