import type { BodyRecipe, BodyTree, Placeholder } from '../../contracts/templates.ts'

/** All placeholders of a template, a tree or a leaf. */
export function placeholdersInTree(tree: BodyTree): readonly Placeholder[] {
  switch (tree.kind) {
    case 'constant':
      return []
    case 'template':
      return tree.template.filter((part) => part.kind === 'placeholder')
    case 'list':
      return tree.items.flatMap(placeholdersInTree)
    case 'members':
      return tree.members.flatMap(([, value]) => placeholdersInTree(value))
  }
}

export const placeholdersOfBody = ({
  template,
  set,
  require: required,
}: BodyRecipe): readonly Placeholder[] => [
  ...(template === undefined ? [] : placeholdersInTree(template)),
  ...[...set, ...required].flatMap(({ leaf }) => placeholdersInTree(leaf)),
]
