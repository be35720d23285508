/** Tells at the end of a run which files were the dearest and what all of it cost, and keeps both for the next run's order. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'
import { cpuSoFar } from './cost.ts'
import { ROOT } from './program.ts'

/** Seconds of processor time, by the path of a file below the repository. */
export type Costs = Readonly<Record<string, number>>

const KEPT = `${ROOT}node_modules/.cache/test-costs.json`
/** How many files are told. */
const TOLD = 10

/** What the files cost when they ran last on this machine; nothing before the first run. */
export function keptCosts(): Costs {
  try {
    return JSON.parse(readFileSync(KEPT, 'utf8')) as Costs
  } catch {
    return {}
  }
}

export default class CostReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const costs = modules.flatMap((module) => {
      const { cost } = module.meta()
      return cost === undefined ? [] : [[module.relativeModuleId, cost.cpu] as const]
    })
    if (costs.length === 0) return
    mkdirSync(dirname(KEPT), { recursive: true })
    writeFileSync(KEPT, JSON.stringify({ ...keptCosts(), ...Object.fromEntries(costs) }))
    const dearest = costs.toSorted(([, one], [, other]) => other - one).slice(0, TOLD)
    // The processes of the tests have ended by then, and count.
    process.once('exit', () => {
      console.log(`Processor time of the run: ${cpuSoFar().toFixed(0)} s. The dearest files:`)
      for (const [file, cpu] of dearest) console.log(`  ${cpu.toFixed(1).padStart(5)} s  ${file}`)
    })
  }
}
