import { pathText, Problems } from '../../config/problems.ts'
import { personRecordSchema, type PersonRecord } from '../schema.ts'
import { readRecord } from '../read-records.ts'
import { PersonMistake, plainPerson } from './plain-person.ts'

/** Problems that are told. */
const MOST_PROBLEMS = 5

/**
 * What the module answered, as a record: undefined for nobody. It is checked like a user of the configuration, after a
 * copy was made.
 * @throws PersonMistake
 */
export function readPerson(given: unknown): PersonRecord | undefined {
  const plain = plainPerson(given)
  if (plain === undefined) return undefined
  const report = new Problems()
  const record = readRecord(personRecordSchema, plain, report)
  if (record !== undefined) return record
  const problems = report.list.map(({ path, message }) => `${pathText(path)} ${withoutValue(message)}`)
  throw new PersonMistake(problems.slice(0, MOST_PROBLEMS).join('; '))
}

/** `expected …` without `, got …`: the value may be anything that the module has. */
const withoutValue = (message: string): string => message.replace(/, got .*/s, '')
