/** The alert rules of `deploy/prometheus`, their tests, and the runbooks, as data. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { ROOT } from './spawn-postern.ts'

export const RULES_FOLDER = join(ROOT, 'deploy/prometheus')

export interface AlertRule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export interface RecordingRule {
  readonly record: string
  readonly expr: string
}

export interface RuleGroup {
  readonly name: string
  readonly rules: readonly (AlertRule | RecordingRule)[]
}

interface AlertCheck {
  readonly alertname: string
  readonly exp_alerts: readonly { readonly exp_labels: Readonly<Record<string, string>> }[]
}

interface RuleTestFile {
  readonly group_eval_order: readonly string[]
  readonly tests: readonly {
    readonly name: string
    readonly input_series: readonly { readonly series: string }[]
    readonly alert_rule_test: readonly AlertCheck[]
  }[]
}

const read = (name: string): unknown => parse(readFileSync(join(RULES_FOLDER, name), 'utf8'))

export const ruleGroups = (): readonly RuleGroup[] =>
  (read('rules.yaml') as { readonly groups: readonly RuleGroup[] }).groups

export const isAlert = (rule: AlertRule | RecordingRule): rule is AlertRule => 'alert' in rule

export const alertRules = (): readonly AlertRule[] =>
  ruleGroups()
    .flatMap(({ rules }) => rules)
    .filter(isAlert)

export const RULE_TEST_FILES: readonly string[] = readdirSync(RULES_FOLDER).filter((name) =>
  name.endsWith('.test.yaml'),
)

export const ruleTests = (): readonly RuleTestFile[] =>
  RULE_TEST_FILES.map((name) => read(name) as RuleTestFile)

export interface Runbook {
  readonly title: string
  readonly text: string
  /** The lines of its first block of commands. */
  readonly commands: readonly string[]
}

/** The sections of the runbooks. */
export function runbooks(): readonly Runbook[] {
  const text = readFileSync(join(ROOT, 'deploy/runbooks.md'), 'utf8')
  return text
    .split(/^### /m)
    .slice(1)
    .map((section) => {
      const [title = ''] = section.split('\n', 1)
      const [, block = ''] = /```sh\n([^`]*)```/.exec(section) ?? []
      return { title, text: section, commands: block.trim().split('\n') }
    })
}
