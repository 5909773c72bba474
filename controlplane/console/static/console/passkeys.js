// Passkeys: a form with data-passkey asks the server for a challenge, lets the browser make or show a passkey, and carries the
// answer in its field `passkey`. What goes wrong stands in the part with data-passkey-problem; its sentences come with the page.
"use strict";

(() => {
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const named = (list) => (list || []).map((each) => ({ ...each, id: bytes(each.id) }));

  async function options(form) {
    const body = new URLSearchParams({
      csrfmiddlewaretoken: form.elements.csrfmiddlewaretoken.value,
      purpose: form.dataset.passkey,
    });
    const answer = await fetch(form.dataset.challenge, { method: "POST", body, headers: { Accept: "application/json" } });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.problem);
    return found;
  }

  async function make(publicKey) {
    publicKey.challenge = bytes(publicKey.challenge);
    publicKey.user.id = bytes(publicKey.user.id);
    publicKey.excludeCredentials = named(publicKey.excludeCredentials);
    const made = await navigator.credentials.create({ publicKey });
    return { id: made.id, rawId: text(made.rawId), type: made.type, response: {
      clientDataJSON: text(made.response.clientDataJSON), attestationObject: text(made.response.attestationObject) } };
  }

  async function show(publicKey) {
    publicKey.challenge = bytes(publicKey.challenge);
    publicKey.allowCredentials = named(publicKey.allowCredentials);
    const shown = await navigator.credentials.get({ publicKey });
    const { clientDataJSON, authenticatorData, signature, userHandle } = shown.response;
    return { id: shown.id, rawId: text(shown.rawId), type: shown.type, response: {
      clientDataJSON: text(clientDataJSON), authenticatorData: text(authenticatorData), signature: text(signature),
      ...(userHandle && userHandle.byteLength ? { userHandle: text(userHandle) } : {}) } };
  }

  function say(form, sentence) {
    const part = form.querySelector("[data-passkey-problem]");
    part.hidden = !sentence;
    part.textContent = sentence || "";
  }

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const button = form.querySelector("button[type=submit]");
    if (!window.PublicKeyCredential) {
      say(form, form.dataset.unsupported);
      button.disabled = true;
      continue;
    }
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (button.disabled || !form.reportValidity()) return;
      button.disabled = true;
      say(form, "");
      try {
        const publicKey = await options(form);
        const answer = form.dataset.passkey === "add" ? await make(publicKey) : await show(publicKey);
        form.elements[form.dataset.field || "passkey"].value = JSON.stringify(answer);
        form.submit();
      } catch (error) {
        const isBrowsers = error instanceof DOMException || error instanceof TypeError || error instanceof SyntaxError;
        say(form, (!isBrowsers && error.message) || form.dataset.failed);
      } finally {
        button.disabled = false;
      }
    });
  }
})();
