/**
 * `node test/long/prove/large-description.ts [--operations 3000] [--schemas 400]`: `postern init --from` of a description whose
 * schemas refer to each other, and the check of what it writes. Reports the sizes, memory and processor time. Fails above
 * 400 MB or 20 s, where the file is more than twice as long, or where the check refuses it.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { stringify } from 'yaml'
import { largeDescription } from '../../support/large-description.ts'

const { values: options } = parseArgs({
  options: {
    operations: { type: 'string', default: '3000' },
    schemas: { type: 'string', default: '400' },
  },
})
const MOST_MB = 400
const MOST_SECONDS = 20
const MAIN = new URL('../../../src/main.ts', import.meta.url).pathname
const TOLD = `process.on('exit', () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage()
  console.error('USED ' + maxRSS / 1024 + ' ' + (userCPUTime + systemCPUTime) / 1e6)
})`

function run(...words: readonly string[]) {
  const preload = `data:text/javascript,${encodeURIComponent(TOLD)}`
  const { status, stderr } = spawnSync(process.execPath, ['--import', preload, MAIN, ...words], {
    encoding: 'utf8',
  })
  const [, mb = '0', seconds = '0'] = /^USED (\S+) (\S+)$/m.exec(stderr) ?? []
  return { status, MB: Math.round(Number(mb)), seconds: Number(Number(seconds).toFixed(1)) }
}

const folder = mkdtempSync(join(tmpdir(), 'postern-large-'))
try {
  const from = join(folder, 'api.yaml')
  const size = { operations: Number(options.operations), schemas: Number(options.schemas) }
  writeFileSync(from, stringify(largeDescription(size), { aliasDuplicateObjects: false }))
  const own = join(folder, 'own')
  const made = run('init', own, '--from', from, '--business-in', 'header:X-Tenant-ID', '--yes')
  const file = join(own, 'postern.yaml')
  const checked = run('check', file)
  const bytes = { description: statSync(from).size, configuration: statSync(file).size }
  console.table({ init: made, check: checked })
  console.log(bytes)
  const holds =
    [made, checked].every(
      ({ status, MB, seconds }) => status === 0 && MB <= MOST_MB && seconds <= MOST_SECONDS,
    ) && bytes.configuration <= 2 * bytes.description
  if (!holds) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true })
}
