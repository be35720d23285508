/** The alert rules, as Prometheus reads them, and the runbooks that they lead to. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  alertRules,
  RULE_TEST_FILES,
  ruleGroups,
  RULES_FOLDER,
  ruleTests,
  runbooks,
} from '../support/alert-rules.ts'
import { runVerb } from '../support/command-line.ts'
import { needing } from '../support/machine.ts'
import { selectors, unknownIn } from '../support/promql.ts'
import { sourceFiles } from '../support/source-files.ts'
import { ROOT } from '../support/spawn-postern.ts'

const promtool = (...args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: RULES_FOLDER, encoding: 'utf8' })
  return { status, told: `${stdout}${stderr}` }
}

describe('deploy/prometheus/rules.yaml', () => {
  it('C11.1 is a file of rules that Prometheus takes', needing('promtool'), () => {
    const { status, told } = promtool('check', 'rules', 'rules.yaml')
    expect(status, told).toBe(0)
  })

  it('C11.1 stands beside an example of a whole configuration', needing('promtool'), () => {
    const { status, told } = promtool('check', 'config', 'prometheus.yaml')
    expect(status, told).toBe(0)
  })

  it('C11.1 fires where it should, and only there', needing('promtool'), () => {
    const { status, told } = promtool('test', 'rules', ...RULE_TEST_FILES)
    expect(status, told).toBe(0)
  })

  it('C11.1 has, for each alert, a test in which it fires and one in which its series do not', () => {
    const tests = ruleTests().flatMap((file) => file.tests)
    const untested = alertRules().flatMap(({ alert, labels, expr }) => {
      const own = tests.flatMap(({ input_series, alert_rule_test }) =>
        alert_rule_test
          .filter(({ alertname }) => alertname === alert)
          .map((check) => ({ ...check, series: input_series.map(({ series }) => series).join(' ') })),
      )
      const fires = own.some(({ exp_alerts }) =>
        exp_alerts.some(({ exp_labels }) =>
          Object.entries(labels).every(([name, value]) => exp_labels[name] === value),
        ),
      )
      const isQuiet = own.some(
        ({ exp_alerts, series }) =>
          exp_alerts.length === 0 && sourcesOf(expr).some((name) => series.includes(name)),
      )
      return fires && isQuiet ? [] : [`${alert} ${JSON.stringify({ ...labels, fires, isQuiet })}`]
    })
    expect(untested).toEqual([])
  })

  it('C11.1 asks only for metrics and labels that Postern has', () => {
    const recorded = recordingRules().map(({ record }) => record)
    const rules = ruleGroups().flatMap((group) => group.rules)
    expect(rules.flatMap(({ expr }) => unknownIn(expr, recorded))).toEqual([])
    const inputs = ruleTests().flatMap(({ tests }) => tests.flatMap(({ input_series }) => input_series))
    expect(inputs.flatMap(({ series }) => unknownIn(series))).toEqual([])
  })

  it('C11.1 names, in the tests, the groups in the order in which they need each other', () => {
    const names = ruleGroups().map(({ name }) => name)
    for (const { group_eval_order } of ruleTests()) expect(group_eval_order).toEqual(names)
  })

  it('C11.1 says of each alert how urgent it is, what is the matter, with values, and where its runbook is', () => {
    for (const { alert, labels, annotations } of alertRules()) {
      expect(['critical', 'warning'], alert).toContain(labels['severity'])
      const { summary = '', description = '', runbook_url } = annotations
      expect(summary, alert).toMatch(/\{\{ \$labels\.(?:job|instance) \}\}/)
      if (alert !== 'Shedding') expect(description, alert).toContain('{{ $value')
      expect(runbook_url).toBe(`deploy/runbooks.md#${alert.toLowerCase()}`)
    }
  })
})

const recordingRules = () =>
  ruleGroups().flatMap(({ rules }) => rules.flatMap((rule) => ('record' in rule ? [rule] : [])))

/** The metrics behind an expression, those behind recorded series included. */
const sourcesOf = (expression: string): readonly string[] =>
  selectors(expression).flatMap(({ name }) => {
    const rule = recordingRules().find(({ record }) => record === name)
    return rule === undefined ? [name] : sourcesOf(rule.expr)
  })

/** `postern audit find --event x` is the command audit, its word find, and its options. */
function readCommand(line: string) {
  const [, command = '', ...words] = line.split(' ')
  const word = words[0]?.startsWith('-') === false && /^[a-z-]+$/.test(words[0]) ? words[0] : undefined
  return { command, word, options: words.filter((each) => each.startsWith('--')) }
}

describe('deploy/runbooks.md', () => {
  it('C11.1 has a section for each alert, and no other', () => {
    const titles = runbooks().map(({ title }) => title)
    expect(new Set(titles)).toEqual(new Set(alertRules().map(({ alert }) => alert)))
    expect(new Set(titles).size).toBe(titles.length)
  })

  it('C11.1 says in each what it means, three commands, what to do and whom to wake', () => {
    for (const { title, text, commands } of runbooks()) {
      expect(commands, title).toHaveLength(3)
      for (const part of ['**It means**: ', '**Then**: ', '**Wake**: ']) expect(text, title).toContain(part)
      const severities = alertRules().flatMap(({ alert, labels }) =>
        alert === title ? [labels['severity'] ?? ''] : [],
      )
      for (const severity of severities) expect(text.toLowerCase(), title).toContain(severity)
    }
  })

  it('C11.1 names only commands that there are, with options that they take', async () => {
    const whole = runbooks().flatMap(({ text, commands }) => [
      ...commands.filter((line) => line.startsWith('postern ')),
      ...(text.match(/(?<=`)postern [^`\n]+(?=`)/g) ?? []),
    ])
    expect(whole.length).toBeGreaterThan(20)
    for (const line of new Set(whole)) {
      const { command, word, options } = readCommand(line)
      const own = word === undefined ? '' : (await runVerb([command, word, '--help'])).stdout
      const { code, stdout } = await runVerb([command, '--help'])
      expect(code, line).toBe(0)
      const help = `${stdout}${own}`
      if (word !== undefined) expect(help, line).toMatch(new RegExp(`\\b${word}\\b`))
      for (const option of options) expect(help, line).toContain(option)
    }
  })

  it('C11.1 names only events that Postern logs', () => {
    const source = sourceFiles(join(ROOT, 'src'))
      .map((file) => readFileSync(file, 'utf8'))
      .join('')
    const told = runbooks().flatMap(({ text }) =>
      [...text.matchAll(/--since \S+ \| grep (?:-E )?'?([^'|\n]+(?:\|[^'\n]+)*)'?/g)].map(
        ([, words = '']) => words,
      ),
    )
    const events = told.flatMap((words) => words.match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? [])
    expect(events.length).toBeGreaterThan(5)
    expect(events.filter((event) => !source.includes(event))).toEqual([])
  })
})
