/**
 * Chooses a group of devices; in a project with very many, one writes its id.
 */
import { api } from "../api/client.ts"
import { useQuery } from "../api/useQuery.ts"
import { useTexts } from "../text/text.ts"
import { SelectField, TextField } from "./Form.tsx"

/** As many as one can choose from in a list. */
const shown = 100

/** `isStatic`: only groups to which devices can be added. */
export const GroupField = (
  { isStatic = false, onChange, value }: {
    readonly value: string
    readonly onChange: (groupId: string) => void
    readonly isStatic?: boolean
  }
) => {
  const { groups: words } = useTexts()
  const groups = useQuery((signal) => api.deviceGroups.listDeviceGroups({ query: { page_size: shown }, signal }), [])
  if ((groups.data?.total ?? 0) > shown) {
    return <TextField label={words.groupId} hint={words.groupIdHint} path="group_id" value={value} onInput={onChange} />
  }
  const known = (groups.data?.results ?? []).filter(({ type }) => !isStatic || type === "static")
  return (
    <SelectField
      label={words.group}
      path="group_id"
      value={value}
      options={[["", words.choose], ...known.map(({ group_id, name }) => [String(group_id), name] as const)]}
      onChange={onChange}
    />
  )
}
