/**
 * Programs that connect a device and report: they work by copy and paste
 * (docs/protocol/connecting.md, docs/protocol/signatures.md).
 */

import { firstOf, isNumber, type ThingModel } from "../../parts/model/Model.ts"

/** A report that fits the model, as JSON: a number if it has one. */
export const sampleOf = (model: ThingModel | undefined): string => {
  const property = model?.properties.find(({ dataType }) => isNumber(dataType)) ?? model?.properties[0]
  if (property === undefined) return `{"Temperature":21.5}`
  const { dataType, id } = property
  const { max, min } = dataType
  const value = max === undefined || min === undefined ? firstOf(dataType) : Math.round((min + max) / 2)
  return JSON.stringify({ [id]: value })
}

/** What a snippet is made for. */
export interface Target {
  readonly productKey: string
  readonly deviceName: string
  readonly deviceSecret: string
  /** Host and port of MQTT over TLS. */
  readonly host: string
  readonly port: string
  /** The file that holds the certificate authority of the server. */
  readonly authority: string
  /** For example `https://cloud.example.com`. */
  readonly origin: string
  /** Properties as JSON on one line. */
  readonly properties: string
}

export const languages = ["mosquitto", "javascript", "c", "curl"] as const
export type SnippetLanguage = (typeof languages)[number]

/** The names of the languages are the same in all languages of the console. */
export const titles: Readonly<Record<SnippetLanguage, string>> = {
  mosquitto: "mosquitto",
  javascript: "JavaScript",
  c: "C",
  curl: "curl"
}

export const snippet = (language: SnippetLanguage, target: Target): string => makers[language](target)

/** As one word of a shell. */
const word = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** As a string of JavaScript and of C: JSON is both. */
const literal = (text: string): string => JSON.stringify(text)

const identity = ({ deviceName, deviceSecret, productKey }: Target): string =>
  `PRODUCT_KEY=${word(productKey)}
DEVICE_NAME=${word(deviceName)}
DEVICE_SECRET=${word(deviceSecret)}`

const message = ({ properties }: Target): string => `{"id":"1","version":"1.0","params":${properties}}`

const makers: Readonly<Record<SnippetLanguage, (target: Target) => string>> = {
  mosquitto: (target) =>
    `${identity(target)}
TEXT="clientIdfirstdeviceName\${DEVICE_NAME}productKey\${PRODUCT_KEY}"
PASSWORD=$(printf %s "$TEXT" | openssl dgst -sha256 -hmac "$DEVICE_SECRET" -r | cut -d' ' -f1)
mosquitto_pub -h ${word(target.host)} -p ${target.port} --cafile ${word(target.authority)} \\
  -i 'first|signmethod=hmacsha256,authType=1|' -u "$DEVICE_NAME&$PRODUCT_KEY" -P "$PASSWORD" -q 1 \\
  -t "/sys/$PRODUCT_KEY/$DEVICE_NAME/thing/event/property/post" \\
  -m ${word(message(target))}
`,

  javascript: (target) =>
    `// node device.mjs
import { createHmac } from "node:crypto"
import { readFileSync } from "node:fs"
import mqtt from "mqtt"

const productKey = ${literal(target.productKey)}
const deviceName = ${literal(target.deviceName)}
const deviceSecret = ${literal(target.deviceSecret)}

const text = \`clientIdfirstdeviceName\${deviceName}productKey\${productKey}\`
const topic = \`/sys/\${productKey}/\${deviceName}/thing/event/property/post\`

const client = await mqtt.connectAsync(${literal(`mqtts://${target.host}:${target.port}`)}, {
  clientId: "first|signmethod=hmacsha256,authType=1|",
  username: \`\${deviceName}&\${productKey}\`,
  password: createHmac("sha256", deviceSecret).update(text).digest("hex"),
  ca: readFileSync(${literal(target.authority)})
})
client.on("message", (topic, payload) => console.log(topic, payload.toString()))
await client.publishAsync(topic, JSON.stringify({ id: "1", version: "1.0", params: ${target.properties} }), { qos: 1 })
`,

  c: (target) =>
    `/* cc device.c -o device -lmosquitto -lcrypto && ./device */
#include <mosquitto.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#define PRODUCT_KEY ${literal(target.productKey)}
#define DEVICE_NAME ${literal(target.deviceName)}
#define DEVICE_SECRET ${literal(target.deviceSecret)}

static void connected(struct mosquitto *client, void *data, int code) {
  const char *message = ${literal(message(target))};
  if (code != 0) {
    fprintf(stderr, "refused: %s\\n", mosquitto_connack_string(code));
    mosquitto_disconnect(client);
    return;
  }
  mosquitto_publish(client, NULL, "/sys/" PRODUCT_KEY "/" DEVICE_NAME "/thing/event/property/post",
                    (int)strlen(message), message, 1, false);
}

static void stored(struct mosquitto *client, void *data, int id) {
  puts("stored");
  mosquitto_disconnect(client);
}

int main(void) {
  const char *text = "clientIdfirstdeviceName" DEVICE_NAME "productKey" PRODUCT_KEY;
  unsigned char sign[32];
  char password[65];
  unsigned int length = 0;
  HMAC(EVP_sha256(), DEVICE_SECRET, (int)strlen(DEVICE_SECRET), (const unsigned char *)text, strlen(text), sign, &length);
  for (unsigned int i = 0; i < length; i++) sprintf(password + 2 * i, "%02x", sign[i]);

  mosquitto_lib_init();
  struct mosquitto *client = mosquitto_new("first|signmethod=hmacsha256,authType=1|", true, NULL);
  mosquitto_connect_callback_set(client, connected);
  mosquitto_publish_callback_set(client, stored);
  mosquitto_username_pw_set(client, DEVICE_NAME "&" PRODUCT_KEY, password);
  mosquitto_tls_set(client, ${literal(target.authority)}, NULL, NULL, NULL, NULL);
  int result = mosquitto_connect(client, ${literal(target.host)}, ${target.port}, 60);
  if (result == MOSQ_ERR_SUCCESS) result = mosquitto_loop_forever(client, -1, 1);
  if (result != MOSQ_ERR_SUCCESS) fprintf(stderr, "%s\\n", mosquitto_strerror(result));
  mosquitto_destroy(client);
  mosquitto_lib_cleanup();
  return result;
}
`,

  curl: (target) =>
    `${identity(target)}
RANDOM_TEXT=$(openssl rand -hex 8)
TEXT="productKey\${PRODUCT_KEY}deviceName\${DEVICE_NAME}random\${RANDOM_TEXT}"
SIGN=$(printf %s "$TEXT" | openssl dgst -sha256 -hmac "$DEVICE_SECRET" -r | cut -d' ' -f1)
curl ${literal(`${target.origin}/openapi/v1/thing-uplink`).slice(0, -1)}?action=PostProperty\
&product_key=$PRODUCT_KEY&device_name=$DEVICE_NAME&sign_method=hmacsha256&random=$RANDOM_TEXT&sign=$SIGN" \
  -H 'Content-Type: application/json' --data-binary ${word(message(target))}
`
}
