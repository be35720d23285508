import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { allCommands, tableOfCommand } from '../../src/cli/command-list.ts'
import { loadCommand } from '../../src/cli/commands.ts'
import { parse } from '../../src/cli/line/options.ts'
import { chosenVerb } from '../../src/cli/line/command.ts'
import type { Verb } from '../../src/operate/operation/verb.ts'
import { runVerb } from '../support/command-line.ts'
import { shellWords } from '../support/shell-words.ts'
import { ROOT } from '../support/spawn-postern.ts'

interface VerbAt {
  /** `maintenance on`. */
  readonly place: string
  readonly verb: Verb
}

const COMMANDS = Object.entries(await allCommands())

const VERBS: readonly VerbAt[] = (
  await Promise.all(
    COMMANDS.map(async ([name, row]) =>
      Object.entries((await tableOfCommand(name, row)).verbs).map(([word, verb]) => ({
        place: `${name} ${word}`.trim(),
        verb,
      })),
    ),
  )
).flat()

/** Reads a command line as the command would. @throws UsageError */
async function read(line: string): Promise<void> {
  const words = shellWords(line.replace(/^source <\((.*)\)$/, '$1'))
  const [name = '', ...args] = words.slice(words.indexOf('postern') + 1)
  const [, row] = COMMANDS.find(([each]) => each === name) ?? []
  if (row === undefined) throw new Error(`there is no command ${name}`)
  if (args.includes('--help')) return
  const chosen = chosenVerb(await tableOfCommand(name, row), args)
  if (chosen === undefined) throw new Error(`${name} needs a verb`)
  parse(chosen.verb, chosen.args)
}

/** Those whose answer is no value: a service, and a program for shells. */
const WITHOUT_JSON = ['serve', 'completion bash', 'completion zsh', 'completion words']

describe('every verb of the command line', () => {
  it.each(VERBS)(
    'C11.6 $place has a usage, what it does, and examples that it can read',
    async ({ place, verb }) => {
      const { code, stdout } = await runVerb([...place.split(' '), '--help'])
      expect(code).toBe(0)
      expect(stdout).toContain(`Usage: postern ${place}`)
      expect(stdout.replaceAll(/\s+/g, ' ')).toContain(verb.summary)
      expect(verb.examples.length).toBeGreaterThan(0)
      for (const { line } of verb.examples) {
        expect(stdout).toContain(line)
        await expect(read(line), line).resolves.toBeUndefined()
      }
    },
  )

  it.each(VERBS)('C11.6 $place tells each of its options', async ({ place, verb }) => {
    const { stdout } = await runVerb([...place.split(' '), '-h'])
    for (const name of Object.keys(verb.options))
      expect(stdout).toMatch(new RegExp(`--(\\[no-\\])?${name}\\b`))
    for (const { help } of Object.values(verb.options)) {
      expect(help).not.toBe('')
      expect(help).not.toMatch(/\.$/)
    }
  })

  it.each(VERBS.filter(({ place }) => !WITHOUT_JSON.includes(place)))(
    'C11.6 $place prints its answer as JSON too',
    ({ verb }) => {
      expect(verb.options).toHaveProperty('json')
    },
  )

  it.each(VERBS)('C11.6 $place suggests the option that was meant', async ({ place, verb }) => {
    const [name = 'help'] = Object.keys(verb.options)
    const { code, stderr } = await runVerb([...place.split(' '), `--${name}x`])
    expect(code).toBe(2)
    expect(stderr).toContain(`there is no option "--${name}x" here — did you mean "--${name}"?`)
  })

  it('C11.6 has a command that does what its table says', async () => {
    for (const [name, row] of COMMANDS) expect(typeof (await loadCommand(name, row)).run).toBe('function')
  })
})

/** The pages for users. */
const PAGES = [
  'README.md',
  'deploy/README.md',
  ...readdirSync(join(ROOT, 'config')).flatMap((name) => (name.endsWith('.md') ? [`config/${name}`] : [])),
]

/** The command lines in the examples of a page. `…` stands for what is left out. */
function commandLines(page: string): readonly string[] {
  const blocks = readFileSync(join(ROOT, page), 'utf8').matchAll(/^```\w*\n(.*?)^```/gms)
  return [...blocks]
    .flatMap(([, block = '']) => block.replaceAll(/\\\n\s*/g, ' ').split('\n'))
    .map((line) => line.replace(/^\$ /, '').replace(/^npm run (--silent )?postern -- /, 'postern '))
    .filter((line) => line.startsWith('postern ') && !line.includes('…'))
}

describe('the pages for users', () => {
  it.each(PAGES.flatMap((page) => commandLines(page).map((line) => ({ page, line }))))(
    'C11.6 $page shows a command line that is read: $line',
    async ({ line }) => {
      await expect(read(line)).resolves.toBeUndefined()
    },
  )
})
