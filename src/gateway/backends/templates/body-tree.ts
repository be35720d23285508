/** The trees of which bodies are made (C8.7). */
import type {
  BodyRecipe,
  BodyTree,
  Leaf,
  Placeholder,
  Template,
} from '../../../base/contracts/calls/templates.ts'
import { placeholdersIn } from './parse.ts'

function leavesOf(tree: BodyTree): readonly Leaf[] {
  switch (tree.kind) {
    case 'list':
      return tree.items.flatMap(leavesOf)
    case 'members':
      return tree.members.flatMap(([, value]) => leavesOf(value))
    default:
      return [tree]
  }
}

/** The same tree with other leaves. */
export function withLeaves(tree: BodyTree, change: (leaf: Leaf) => Leaf): BodyTree {
  switch (tree.kind) {
    case 'list':
      return { kind: 'list', items: tree.items.map((item) => withLeaves(item, change)) }
    case 'members':
      return {
        kind: 'members',
        members: tree.members.map(([name, value]) => [name, withLeaves(value, change)]),
      }
    default:
      return change(tree)
  }
}

/** The texts with placeholders. */
export const templatesInTree = (tree: BodyTree): readonly Template[] =>
  leavesOf(tree).flatMap((leaf) => (leaf.kind === 'template' ? [leaf.template] : []))

export const placeholdersInTree = (tree: BodyTree): readonly Placeholder[] =>
  templatesInTree(tree).flatMap(placeholdersIn)

export const placeholdersOfBody = ({
  template,
  set,
  require: required,
}: BodyRecipe): readonly Placeholder[] => [
  ...(template === undefined ? [] : placeholdersInTree(template)),
  ...[...set, ...required].flatMap(({ leaf }) => placeholdersInTree(leaf)),
]
