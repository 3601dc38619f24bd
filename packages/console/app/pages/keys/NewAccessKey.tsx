/**
 * Creates an access key, and shows it once.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { may } from "../../api/session.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { ListField, listOf } from "../../parts/Fields.tsx"
import { Form, SelectField, TextField } from "../../parts/Form.tsx"
import { Snippet } from "../../parts/Small.tsx"
import { useIsGone } from "../../parts/useIsGone.ts"
import { useTexts } from "../../text/text.ts"

/** Owners are made by the server alone. */
const roles = ["viewer", "operator", "admin"] as const
type GivenRole = (typeof roles)[number]

export const NewAccessKey = (
  { onClose, onCreated }: { readonly onClose: () => void; readonly onCreated: () => void }
) => {
  const { common, keys } = useTexts()
  const [name, setName] = useState("")
  const [role, setRole] = useState<GivenRole>("viewer")
  const [expires, setExpires] = useState("")
  const [limits, setLimits] = useState({ products: "", actions: "", addresses: "" })
  const [created, setCreated] = useState<string>()
  // Who closes the dialog gets no key, also if it is being created: nobody would ever see it.
  const isClosed = useIsGone()
  return (
    <Dialog title={keys.create} onClose={onClose}>
      {created === undefined ?
        (
          <Form
            submit={common.create}
            onCancel={onClose}
            onSubmit={async () => {
              const expires_at = expires === "" ? {} : { expires_at: new Date(expires).toISOString() }
              const { id, key } = await api.projects.createAccessKey({
                payload: { name, role, ...expires_at, ...limitsOf(limits) },
                isUndone: true
              })
              if (isClosed.current) await api.projects.deleteAccessKey({ params: { id } })
              setCreated(key)
              onCreated()
            }}
          >
            <TextField label={common.name} path="name" required value={name} onInput={setName} />
            <SelectField
              label={keys.role}
              path="role"
              hint={keys.roleHints[role]}
              value={role}
              options={roles.filter(may).map((role) => [role, common.roles[role]] as const)}
              onChange={setRole}
            />
            {(["products", "actions", "addresses"] as const).map((limit) => (
              <ListField
                key={limit}
                label={keys.limits[limit]}
                path={limit === "addresses" ? limit : `scopes.${limit}`}
                hint={keys.limitHints[limit]}
                rows={2}
                value={limits[limit]}
                onInput={(text) => setLimits({ ...limits, [limit]: text })}
              />
            ))}
            <TextField
              label={keys.expires}
              path="expires_at"
              hint={keys.expiresHint}
              type="datetime-local"
              value={expires}
              onInput={setExpires}
            />
          </Form>
        ) :
        (
          <>
            <p class="notice warn">{keys.shownOnce}</p>
            <Snippet label={keys.newKey} text={created} />
          </>
        )}
    </Dialog>
  )
}

/** What the texts of the form limit a key to. An empty one limits nothing. */
const limitsOf = ({ actions, addresses, products }: Readonly<Record<"actions" | "addresses" | "products", string>>) => {
  const given = (name: string, text: string) => listOf(text).length === 0 ? {} : { [name]: listOf(text) }
  return { scopes: { ...given("products", products), ...given("actions", actions) }, ...given("addresses", addresses) }
}
