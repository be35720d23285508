/** The end of what CI prints: each failed test with its message, then the counts. */
import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { dataFolder } from './support/data-folder.ts'

const script = new URL('../.ci/count.js', import.meta.url).pathname

it('names each failed test, each file that cannot be loaded and each missing report, and counts them', async () => {
  const folder = await dataFolder()
  const report = join(folder, 'test.json')
  const missing = join(folder, 'none.json')
  const stack =
    'AssertionError: 1 is not 2\n    at test/a.test.ts:3:1\n    at node_modules/vitest/dist/run.js:1:1'
  const long = `Error: first${'.'.repeat(3000)}last line of a log`
  await writeFile(
    report,
    JSON.stringify({
      success: false,
      numPassedTests: 7,
      testResults: [
        {
          name: 'test/a.test.ts',
          status: 'failed',
          assertionResults: [
            { status: 'passed', fullName: 'holds', failureMessages: [] },
            { status: 'failed', fullName: 'C1 counts', failureMessages: [stack] },
            { status: 'failed', fullName: 'C2 serves', failureMessages: [long] },
          ],
        },
        { name: 'test/b.test.ts', status: 'failed', message: 'Cannot find c.ts', assertionResults: [] },
      ],
    }),
  )

  const { stdout, status } = spawnSync(process.execPath, [script, report, missing], { encoding: 'utf8' })

  expect(stdout.trimEnd().split('\n')).toEqual([
    'FAILED: test/a.test.ts: C1 counts',
    '  AssertionError: 1 is not 2',
    '      at test/a.test.ts:3:1',
    'FAILED: test/a.test.ts: C2 serves',
    expect.stringMatching(/^ {2}Error: first\.+…\.+last line of a log$/),
    'FAILED: test/b.test.ts',
    '  Cannot find c.ts',
    `FAILED: ${missing}`,
    '  The run broke off before it wrote this report: see above.',
    '7 passed, 4 failed',
  ])
  expect(status).toBe(1)
})
