/** Resolves `{ file: … }` and `{ env: NAME, default: … }`. No problem shows the content. */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { reasonInWords } from '../kernel/thrown.ts'
import type { KeyPath, Place, Problems } from './problems.ts'
import type { ConfigNode, MapNode } from './tree.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface LoadContext {
  readonly environment: Environment
  readonly problems: Problems
  /** Whether `{ file: … }` and `{ env: … }` are no references: of what comes from elsewhere than a file of the operator's. */
  readonly literal?: true
}

/** The absolute path of a name, which is relative to the folder of the file that contains it. */
export const besideFile = (at: Place, path: string): string => resolve(dirname(at.file), path)

/** Whether a node has only keys of a reference. Any other key makes it a section. */
export function isReference(node: ConfigNode): node is MapNode {
  if (node.shape !== 'map') return false
  const keys = [...node.entries.keys()]
  return keys.length > 0 && keys.every((key) => key === 'file' || key === 'env' || key === 'default')
}

function textAt(node: MapNode, key: string): string | undefined {
  const found = node.entries.get(key)?.node
  return found?.shape === 'scalar' && typeof found.value === 'string' ? found.value : undefined
}

function fromFile(path: string, at: Place, keyPath: KeyPath, { problems }: LoadContext): string | undefined {
  problems.files.add(besideFile(at, path))
  try {
    return readFileSync(besideFile(at, path), 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    problems.error(
      [...keyPath, 'file'],
      `names the file "${path}", which cannot be read (${reasonInWords(error)})`,
    )
    return undefined
  }
}

function fromEnvironment(node: MapNode, name: string, path: KeyPath, context: LoadContext) {
  const value = context.environment[name] ?? textAt(node, 'default')
  if (value === undefined) {
    context.problems.error(
      [...path, 'env'],
      `names the environment variable ${name}, which is not set`,
      'set it, or give a default',
    )
  }
  return value
}

/** The text that a reference refers to; undefined, after a reported problem, if there is none. */
export function resolveReference(node: MapNode, path: KeyPath, context: LoadContext): string | undefined {
  const file = textAt(node, 'file')
  const name = textAt(node, 'env')
  if (file !== undefined && node.entries.size === 1) return fromFile(file, node.at, path, context)
  if (name !== undefined && !node.entries.has('file')) return fromEnvironment(node, name, path, context)
  context.problems.error(path, 'expected { file: … } or { env: NAME, default: … }, both as texts')
  return undefined
}
