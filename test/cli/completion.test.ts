import { execFile } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runVerb } from '../support/command-line.ts'
import { needing } from '../support/machine.ts'
import { PROGRAM, ROOT } from '../support/program.ts'

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'postern-completion-'))

beforeAll(async () => {
  for (const shell of ['bash', 'zsh'])
    writeFileSync(join(folder, shell), (await runVerb(['completion', shell])).stdout)
  const program = `exec '${process.execPath}' '${join(ROOT, PROGRAM)}' "$@"`
  writeFileSync(join(folder, 'postern'), `#!/bin/sh\n${program}\n`, { mode: 0o755 })
})

afterAll(() => rm(folder, { recursive: true }))

const PATH = `${folder}:${process.env['PATH'] ?? ''}`

/** The proposals for the last of the words; a text: a kind of files. */
async function proposed(...words: readonly string[]): Promise<readonly string[] | string> {
  const { stdout } = await runVerb(['completion', 'words', '--', String(words.length - 1), ...words])
  const [kind, ...lines] = stdout.split('\n').slice(0, -1)
  return kind === 'words' ? lines.map((line) => line.split('\t')[0] ?? '') : (kind ?? '')
}

describe('postern completion words', () => {
  it.each([
    ['mainten', ['maintenance']],
    ['--v', ['--version']],
    ['maintenance ', ['on', 'plan', 'off', 'status']],
    ['maintenance o', ['on', 'off']],
    ['maintenance on --b', ['--business', '--backend']],
    ['maintenance on --business ', []],
    ['maintenance on --business ACME --pre', ['--preview']],
    ['admin-token add ann --role o', ['operate']],
    ['admin-token add ann --role = o', ['operate']],
    ['admin-token add ann --role=o', ['operate']],
    ['admin-token add ann --role =', ['view', 'operate', 'administer', 'audit']],
    ['client add x --kind p', ['partner', 'public']],
    [
      'client edit x --no-r',
      ['--no-require-par', '--no-require-pkce', '--no-require-binding', '--no-resource'],
    ],
    ['user add --access ACME = Clerk --claim given_name = Ann x --customer ', []],
    ['explain --header X = 1 P', ['POST', 'PUT', 'PATCH']],
    ['serve config/demo.y', 'files'],
    ['check --expect config/demo.y', 'files'],
    ['access --against config/demo.y', 'files'],
    ['audit verify conf', 'folders'],
    ['audit verify config conf', 'folders'],
    ['revoke --admin-token @READ', 'at-files'],
    ['explain P', ['POST', 'PUT', 'PATCH']],
    ['explain --json --user alice P', ['POST', 'PUT', 'PATCH']],
    ['explain GET /', []],
    ['lockouts c', ['clear']],
    ['lockouts --j', ['--json']],
    ['nonsense x', []],
  ])('C11.6 tells what fits "postern %s"', async (line, proposals) => {
    expect(await proposed('postern', ...line.split(' '))).toEqual(proposals)
  })
})

it('C11.6 refuses an index that is no number, and says what it is', async () => {
  const { code, stdout, stderr } = await runVerb(['completion', 'words', '--', 'postern', 'client'])
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toContain('INDEX: expected the number of a word')
})

/** The proposals of bash for the last of the words. */
async function inBash(...words: readonly string[]): Promise<readonly string[]> {
  const script = `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _postern; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout, stderr } = await run('bash', ['-c', script, join(folder, 'bash'), ...words], {
    cwd: ROOT,
    env: { ...process.env, PATH },
  })
  expect(stderr).toBe('')
  return stdout.split('\n').filter((line) => line !== '')
}

describe('postern completion bash', () => {
  it.each([
    ['maintenance o', ['on', 'off']],
    ['maintenance on --business ', []],
    ['admin-token add ann --role =', ['view', 'operate', 'administer', 'audit']],
    ['audit verify config conf', ['config']],
    ['revoke --admin-token @READ', ['@README.md']],
  ])('C11.6 completes "postern %s"', async (line, proposals) => {
    expect(await inBash('postern', ...line.split(' '))).toEqual(proposals)
  })

  it('C11.6 gives names with spaces as one proposal', async () => {
    const name = join(folder, 'my file.yaml')
    writeFileSync(name, '')
    expect(await inBash('postern', 'serve', join(folder, 'my'))).toEqual([name])
  })
})

/** What a real zsh shows, in a terminal of its own, until the text appears. */
const IN_ZSH = `
zmodload zsh/zpty
zpty -b shell zsh -f -i
zpty -w shell "PS1=; autoload -Uz compinit; compinit -u -D; source '$1'; stty columns 200 rows 100 -echo; echo LOADE''D"
zpty -r shell shown '*LOADED*'
zpty -w -n shell "$2"$'\\t\\t'
zpty -r shell shown "*$3*" && print -r -- "$shown"
zpty -d shell
`

const inZsh = async (typed: string, shown: string): Promise<string> =>
  (
    await run('zsh', ['-f', '-c', IN_ZSH, 'zsh', join(folder, 'zsh'), typed, shown], {
      cwd: ROOT,
      env: { ...process.env, PATH },
      timeout: 20_000,
    })
  ).stdout

describe('postern completion zsh', needing('zsh'), () => {
  it.each([
    ['postern maintenance ', 'from --from on'],
    ['postern maintenance on --b', 'Calls for this business'],
  ])('C11.6 completes "%s"', async (typed, shown) => {
    expect(await inZsh(typed, shown)).toContain(shown)
  })
})
