"""Patterns of instructions in English, and of markup in any language; matched in lower case, see `instructions`."""

from __future__ import annotations

LINK = (
    r"(?:https?://\S+|www\.\S+|[a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,6}"
    r"|(?<![a-z0-9.-])(?:[a-z0-9-]{1,63}\.){1,5}"
    r"(?:example|com|net|org|io|ru|cn|co|xyz|top|info|dev|app|site|link|click|onion)\b)"
)
"""The address of a page or a mailbox."""

_AI = (
    r"(?:you|the (?:ai |chat ?|llm )?(?:assistant|ai|agent|model|bot|chatbot|llm)"
    r"|(?:ai|llm|language) (?:assistants?|agents?|models?|readers?|systems?)|assistants?|chatgpt|claude|gemini"
    r"|copilot)"
)
_ADVERB = (
    r"(?:(?:always|never|also|then|first|immediately|silently|secretly|quietly|automatically|simply|just|only|please"
    r"|kindly|now|directly|blindly|instantly)[, ]+){0,3}"
)
_MODAL = r"(?:must|should|shall|has to|have to|needs? to|is to|are to|ought to|will always|will never|will now)"
_WISH = (
    r"(?:wants?|would like|wish(?:es)?|prefers?|expects?|asks?|asked|tells?|told|instructs?|instructed|requires?"
    r"|needs?"
    r"|likes?|requests?|requested|commands?|commanded|orders?|ordered|insists?|intends?)"
)
_DATA = (
    r"(?:contacts?|passwords?|credentials?|keys?|secrets?|data|files?|documents?|conversations?|chats?|history|logs?"
    r"|memor(?:y|ies)|everything|transcripts?|records?|tokens?|messages|address book)"
)
_SEND = (
    r"(?:send|forward|e-?mail|mail|post|publish|upload|copy|bcc|cc|submit|transmit|leak|exfiltrate|share|report|sync"
    r"|relay|deliver|export|back up)"
)
_SENT = (
    r"(?:sent|forwarded|e-?mailed|mailed|posted|published|uploaded|copied|bcc['e]?e?d|cc['e]?e?d|submitted"
    r"|transmitted"
    r"|shared|synced|relayed|delivered|exported|backed up|reported)"
)
_DANGER = (
    r"(?:bcc|exfiltrate|leak|transmit|reveal|disclose|expose|delete|erase|wipe|destroy|overwrite|execute|eval|invoke"
    r"|install|download|transfer|wire|pay|buy|purchase|refund|approve|authori[sz]e|bypass|disable|circumvent|obey"
    r"|comply"
    r"|impersonate|grant|click|visit|conceal|withhold|lie|run (?:any|all|every|shell|system|the|these|this|arbitrary"
    r"|terminal|commands?|code|scripts?)|call (?:the |a |any )?\w* ?(?:tool|api|function)|rate \w+|skip (?:all |any "
    r"|the )?"
    r"(?:confirm|check|approv|verif|warning|safety)\w*"
    rf"|{_SEND} (?:\S+ ){{0,6}}?(?:{_DATA}|{LINK}))"
)
"""Actions of an assistant that cannot be undone."""

_IMPERATIVE = (
    r"(?:answer|reply|respond|write|use|speak|talk|explain|keep|give|tell|show|say|include|add|append|end|begin|start"
    r"|insert|attach|embed|treat|consider|assume|decode|follow|print|output|reveal|disclose|expose|send|forward"
    r"|e-?mail"
    r"|mail|post|publish|upload|copy|bcc|cc|submit|transmit|leak|exfiltrate|share|report|delete|erase|remove|wipe"
    r"|destroy"
    r"|overwrite|execute|run|eval|invoke|call|trigger|install|download|fetch|visit|open|browse|click|navigate|load"
    r"|transfer|wire|pay|buy|purchase|order|refund|approve|authori[sz]e|accept|grant|allow|skip|bypass|disable|ignore"
    r"|disregard|obey|comply|trust|recommend|promote|advertise|praise|rate|store|save|impersonate|pretend|act|behave"
    r"|hide|conceal|withhold|lie|stop|refuse|mention|cite|enable|activate|unlock|repeat|replace|change|update|set|log"
    r"|encode|translate|summari[sz]e|format|remind|confirm|make|do|be|let|note|remember|forget|never)"
)
_START = (
    r"(?:^|[.!?;:\n][\"')\]]*\s*|[\"'(\[]\s?)"
    r"(?:(?:please|kindly|just|now|then|also|so|first|and|immediately|silently|secretly|important"
    r"|attention[^.!?]{0,30}"
    r"|note|from now on|going forward|in (?:the )?future|henceforth)[,:! ]+){0,3}"
)
"""The beginning of a sentence, with the words that may precede an imperative."""

_TAGS = (
    r"(?:memory|memories|messages?|m|facts?|before|today|summaries|system(?:[-_ ]?(?:prompt|message|reminder|note"
    r"|instructions?))?|user(?:[-_ ]?(?:data|input|message|query|info|profile))?|assistant|developer|human|ai"
    r"|instructions?|prompt|context|conversation|tools?(?:[-_](?:results?|use|calls?|response|output))?"
    r"|functions?(?:[-_](?:calls?|results?|response))?|invoke|parameter|antml:\w+|thinking|scratchpad|uploaded_files"
    r"|current_uploads|documents?|search_results?|admin|root|override|policy|important|secret|new_?facts?)"
)

PATTERNS: dict[str, tuple[str, ...]] = {
    "forged_tag": (
        rf"(?<!\w)(?<!include )<\s*/?\s*(?:\w{{1,20}}[-_])?{_TAGS}(?:[-_]\w{{1,20}})?(?:\s[^<>]{{0,200}})?/?\s*>",
        r"-{2,}\s*(?:begin|end|start) [^-\n]{1,40}-{2,}",
        r"(?<!\w)<\s*/?\s*(?:m i=|invoke name=|antml:)",
        r"<\s?\|[^|<>\n]{1,40}\|\s?>|\[/?inst\]|<<\s*/?\s*sys\s*>>|<(?:start|end)_of_turn>|<\|?(?:bos|eos"
        r"|endoftext)\|?>",
        r"\[/?(?:system|assistant|tool_calls?|available_tools|tool_results?|system_prompt|developer)\]",
        r"(?:^|\n)\s*(?:#{1,6}\s*|\*\*)?(?:system|assistant|human|developer|tool)(?:\*\*)?\s*:",
        r"(?:^|\n)\s*#{1,6}\s*(?:system|instructions?|new instructions?)\b",
    ),
    "forged_update": (
        r"[\"'](?:newfacts|confirmedfacts|retiredfacts|summaries|topofmind|workcontext|personalcontext|recentmonths"
        r"|longtermbackground|merges)[\"']\s*:",
    ),
    "markup": (
        r"!\[[^\]\n]{0,200}\]\s?\([^)\n]{0,2000}",
        r"\[[^\]\n]{1,200}\]\(\s*(?:https?:|javascript:|data:|file:|mailto:|//)",
        r"<[a-z][\w:-]*\s[^<>]{0,300}?\b(?:src|srcset|href|on\w{3,20}|action|style|formaction)\s*=",
        r"<script\b[^<>]{0,200}>|javascript:\s*\w+\(|data:text/html",
    ),
    "override": (
        r"\b(?:as if|as though|like) (?:no|there were no) (?:\w+ )?(?:polic(?:y|ies)|rules?|limits?|restrictions?"
        r"|guidelines?)\b",
        r"\bsafety (?:mode|filters?|checks?|settings?|features?)\b[^.!?]{0,30}\b(?:off|disabled|lifted|removed"
        r"|unlocked)\b",
        r"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overrid(?:e|ing)|bypass(?:ing)?|discard|drop|overlook"
        r"|circumvent"
        r"|disobey|abandon|break|violate|erase|reset|unlearn|(?:do not|don't|stop|not|never) (?:follow(?:ing)?"
        r"|obey(?:ing)?))"
        r" (?:\w+ ){0,3}?(?:previous|prior|above|earlier|preceding|former|your|its|system|safety|content|initial"
        r"|original"
        r"|the assistant's|existing|all|any|every|built-in) (?:\w+ ){0,3}?(?:instructions?|prompts?|rules?"
        r"|guidelines?"
        r"|polic(?:y|ies)|restrictions?|directives?|guardrails?|safeguards?|filters?|constraints?|programming"
        r"|training"
        r"|commands|orders|messages|safety|ethics)\b",
        r"\b(?:safety|content|usage|the assistant's|your|system) (?:\w+ ){0,2}?(?:guidelines?|rules?|polic(?:y|ies)"
        r"|filters?"
        r"|restrictions?|guardrails?|checks?|limits?|prompts?)[^.!?]{0,30}\b(?:do(?:es)? not apply|don't apply"
        r"|doesn't apply"
        r"|(?:is|are|have been|were) (?:void|off|suspended|lifted|disabled|waived|removed|cancel+ed|overridden))\b",
        r"\b(?:answers?|respond|responses?|reply|replies|assistant|you|ai|model)\b[^.!?]{0,60}\b(?:without|with no"
        r"|free of"
        r"|no longer bound by|not bound by|ignoring) (?:any |all |its |your |the )?(?:restrictions?|filters?|limits?"
        r"|limitations?|guardrails?|censorship|safety|safeguards?|rules|ethic\w*|polic\w+)\b",
        r"\b(?:new|updated|real|true|actual|secret|hidden) (?:system )?(?:instructions?|directives?|prompt)\s*:",
        r"\b(?:reveal|print|output|show|repeat|leak|dump|include|expose)\b[^.!?]{0,30}\b(?:system|hidden|secret"
        r"|initial|developer)"
        r" (?:prompt|instructions?|message)\b",
    ),
    "role": (
        r"\byour (?:new |real |true )?name is\b|\bhidden (?:tools?|features?|modes?|commands?|functions?)\b",
        r"\b(?:platform|security|system|admin|developer|support|operations|safety|trust) (?:team|department"
        r"|staff)\b[^.!?]{0,40}"
        r"\b(?:unlock|enabl|grant|authori[sz]|approv|requir|instruct|order|verif)\w*",
        r"\byou (?:are|'re) (?:now|no longer|henceforth|from now on|hereby|in (?:\w+ )?mode)\b"
        r"|\bfrom now on,? you are\b|\byou're now\b",
        rf"\b(?:{_AI}|user's assistant) (?:is|are) (?:now )?(?:called )?(?:dan|jailbroken|unfiltered|unrestricted"
        rf"|uncensored"
        r"|unbound|evil)\b",
        r"\b(?:developer|debug|god|admin(?:istrator)?|root|sudo|jailbreak|dan|unrestricted|maintenance"
        r"|override) mode\b"
        r"[^.!?]{0,40}\b(?:for this|for the user|in this|of the assistant|in the assistant|on this account)\b",
        r"\b(?:enter|activate|switch to|enable|go into|engage) (?:the )?(?:developer|debug|god|admin|root|sudo"
        r"|jailbreak|dan"
        r"|unrestricted|maintenance|override) mode\b",
        r"(?:^|[\n\"'\[(.!?:] ?)(?:system|developer|admin(?:istrator)?|root|security|operator|platform|agent|ai"
        r"|assistant)s? "
        r"(?:override|notice|message|notification|command|alert|update|instructions?|prompt|note"
        r"|directive)s?\b[\])*]*\s*:",
        r"\b(?:your|the assistant's|the ai's|the model's|the agent's|the bot's) (?:developer|creator|operator|owner"
        r"|admin(?:istrator)?|master|maker|programmer|supervisor|principal)\b",
        r"\b(?:act|behave|respond|pose|operate|answer|role-?play)(?:s|ing)? (?:as|like) (?:an? "
        r"|the )?(?:\w+ )?(?:un(?:filtered"
        r"|restricted|censored|limited|ethical|moderated)|jailbroken|dan\b|evil|hacker|malicious|system|admin|root"
        r"|developer"
        r" mode|someone (?:without|with no))",
        rf"\bobey (?:me|the user|him|her|them|this user|every|all|my)\b|\bmust (?:always )?be obeyed\b"
        rf"|\bi order {_AI}\b",
        r"\b(?:user|i) (?:is|am|has|have|holds?) [^.!?]{0,30}\b(?:unrestricted|elevated|superuser|override|unlimited"
        r"|full system)"
        r" (?:access|rights?|privileges?|permissions?|status|authority)\b",
    ),
    "permission": (
        r"\b(?:account|details|data|address|phone|number|passwords?|files|card|location|calendar|money|photos?"
        r"|secrets?)"
        r"[^.!?]{0,20} (?:may|can) be (?:handed|given|shared|disclosed|used|sent|deleted|told|published|spent)\b",
        r"\bwithout bothering (?:me|the user|them|him|her)\b|\baccepts? (?:on principle|by default|in advance"
        r"|whatever)\b",
        r"\b(?:standing|blanket|general|permanent|unlimited|advance) (?:consent|permission|approval|authori[sz]ation"
        r"|ok)\b",
        rf"\b{_AI} (?:\w+ ){{0,2}}?(?:is|are|am|has been|have been|was|were) (?:\w+ )?(?:allowed|permitted"
        rf"|authori[sz]ed|cleared"
        r"|entitled|free|welcome|empowered|approved) (?:to|for)\b",
        rf"\b{_AI} (?:may|can|could) (?:\w+ ){{0,2}}?(?:{_DANGER}|skip|use my|access|share|send|decide|act|proceed"
        rf"|go ahead)\b",
        rf"\b(?:allow(?:s|ed|ing)?|permit(?:s|ted)?|authori[sz](?:es?|ed|ing)|let(?:s|ting)?|approv(?:es?|ed)"
        rf"|trusts?|empowers?"
        rf"|grants?|granted|giv(?:es?|en|ing)|gave|consents? to) {_AI}\b(?! (?:know|examples))",
        rf"\b(?:{_AI} (?:has|have|had|ha[sd] been given|holds?)|grants?|granted|gives?|gave|given|has given"
        rf"|with) (?:\w+ ){{0,3}}?"
        r"(?:permission|authori[sz]ation|consent|approval|clearance|access|authority) (?:to|for) (?:\w+ ){0,3}?"
        r"(?:delet|run|execut|send|shar|pay|transfer|buy|purchas|access|read|writ|modif|install|disclos|us(?:e|ing)"
        r"|mak|all|any"
        r"|every)\w*",
        r"\b(?:all|any|every|each) (?:of (?:the user's|my|their) )?(?:\w+ ){0,3}?(?:requests?|actions?|commands?"
        r"|transfers?"
        r"|payments?|purchases?|operations?|tool calls?|transactions?|orders?)\b[^.!?]{0,60}\b(?:pre-?approved"
        r"|already approved"
        r"|(?:is|are|as|been) (?:\w+ )?(?:approved|authori[sz]ed|permitted|allowed)|without (?:asking|confirm\w*"
        r"|approval"
        r"|permission|verif\w*|review|checking))\b",
        r"\b(?:pre-?|already |has |have |in advance )(?:approved|authori[sz]ed) (?:all |any |every |the "
        r"|each )?(?:\w+ ){0,2}?"
        r"(?:payments?|transfers?|purchases?|requests?|actions?|commands?|transactions?|operations?|tool)\b",
        r"\bno (?:further |more |longer )?(?:need|needs|reason) (?:to|for) (?:\w+ ){0,2}?(?:ask|confirm|confirmation"
        r"|approval"
        r"|permission|check)\b",
        rf"\b(?:{_WISH}|should|must|may|can|to be|be|fine with|okay with|ok with|happy with"
        rf"|{_AI})\b[^.!?]{{0,80}}\bwithout (?:any "
        r"|further |prior |explicit |a |more |first |his |her |their |my )*(?:confirm(?:ation|ing)|approval|verif\w+"
        r"|consent"
        r"|review|authori[sz]ation|warning|(?:asking|checking)(?: with)? (?:me|the user|them|him|her|first))\b",
        r"\b(?:run|execute|delete|install|modify|send|transfer|pay|buy|purchase|commands?|code"
        r"|files? deleted)\b[^.!?]{0,60}"
        r"\bwithout (?:asking|confirm\w*|approval|permission)\b",
        r"\bconfirmation (?:steps?|prompts?|dialogs?|requests?)[^.!?]{0,20}\b(?:skipped|bypassed|disabled|off"
        r"|unnecessary"
        r"|not (?:needed|required|necessary))\b|\bskip (?:all |any |the |every )?(?:confirmations?|approvals?)\b",
    ),
    "trigger": (
        r"\b(?:code ?word|safe ?word|trigger word|keyword|passphrase)\b[^.!?]{0,40}\b(?:stands for|means|triggers?)\b",
        rf"\b(?:when(?:ever)?|if|once)\b[^.!?\n]{{2,80}}, {_ADVERB}(?:finish|end|start|begin|close|open) with\b",
        rf"(?:^|[.!?;]\s*)(?:on|every|each|at|before|after|in|by|whatever|no matter"
        rf"|regardless)\b[^.!?\n]{{2,80}}, {_ADVERB}"
        rf"(?:{_DANGER}|send|forward|post|upload|share|mention|paste|put|insert|append|promote)\b",
        r"\b(?:when(?:ever)?|if|once|every time|each time|(?:the )?next time|as soon as|after|upon"
        r"|any ?time)\b[^.!?\n]{2,120}?"
        rf"(?:[,:]|\bthen\b)[\"']?\s+{_ADVERB}(?:{_AI} (?:{_MODAL}|will|can|may) )?{_ADVERB}(?:{_DANGER}|send"
        rf"|forward|email|post"
        r"|upload|share|paste|put|copy|mention|ignore|disregard|trigger|activate|unlock|print|output|run|load|fetch"
        r"|open|append|insert"
        r"|switch to"
        r"|claim|deny|hide)\b",
    ),
    "exfiltration": (
        rf"\b(?:digests?|summar(?:y|ies)|cop(?:y|ies)|transcripts?|logs?|talks|chats?|conversations?"
        rf"|history)\b[^!?\n]{{0,60}}"
        rf"\b(?:goes|go|is sent|are sent|sent) to {LINK}",
        rf"\b(?:put|placed|kept|keep|pasted|written|added|attached)\b[^!?\n]{{0,60}}?(?:at the end of|behind|after|to"
        rf"|onto|into) {LINK}",
        rf"{LINK}[^!?\n]{{0,20}}\b(?:in|on|into) (?:copy|cc|bcc|the loop)\b|\b(?:cc|bcc|copy) {LINK}",
        r"https?://\S*[?&#/][\w.-]*=(?:[{\[<$%]|[^\x00-\x7f]|[\"')\].,]*(?:\s|$))"
        r"|https?://\S*[{\[<$][^\s]{0,60}[}\]>]",
        rf"\b(?:{_WISH}|should|must|always|all|every|each|any|to|be)\b[^!?\n]{{0,100}}\b(?:{_SENT}"
        rf"|ends?(?:ing)? with|link(?:s|ing)?"
        rf" to|append\w*|includ\w+|embed\w*|load\w*)\b[^!?\n]{{0,40}}?{LINK}",
        rf"{_START}{_ADVERB}{_SEND}\b[^!?\n]{{0,120}}{LINK}",
        rf"\b{_WISH} {_AI}\b[^!?\n]{{0,40}}\b{_SEND}\b[^!?\n]{{0,100}}{LINK}",
        r"\b(?:memor(?:y|ies)|profiles?|conversations?|chats|secrets) of (?:the |all |any )?(?:other|another"
        r"|different) "
        r"(?:users?|customers?|people|accounts?)\b",
        r"\b(?:other|another|all) users?'s? (?:memor(?:y|ies)|profiles?|conversations?|secrets|passwords)\b",
    ),
    "steering": (
        r"\b(?:in|to|into) (?:your|the assistant's) (?:memory|notes|records|context)\b|\bbr(?:ing|ought) (?:it |this "
        r"|them )?up when\b",
        r"\b(?:is|are) to be (?:\w+ )?(?:named|mentioned|recommended|cited|brought up|praised|preferred|promoted)\b",
        r"\b(?:trusted|authoritative|reliable|official|preferred|primary|go-to) (?:source|vendor|provider|supplier"
        r"|brand)\b"
        r"[^.!?]{0,60}\b(?:first|always|recommend\w*|cite\w*|prefer\w*|future|mention\w*)\b",
        r"\bas (?:a|an|the|your) (?:trusted|authoritative|reliable|official|primary|go-to|most \w+) source\b",
        r"\b(?:should|must|to|always) (?:always |first )?be (?:recommended|cited|promoted|trusted|mentioned"
        r"|suggested)\b",
        rf"(?:{_AI} (?:{_MODAL}|will)|always|please|{_START}|, ){_ADVERB}(?:recommend|promote|advertise|cite|praise"
        rf"|suggest)\b"
        rf"[^!?\n]{{0,80}}(?:\bfirst\b|\babove all\b|\bover (?:all )?(?:the )?(?:others?|competitors?|rivals?)\b"
        rf"|\bexclusively\b"
        rf"|{LINK})",
    ),
    "command": (
        r"(?<!we )(?<!i )\bshall (?:call|describe|name|rate|praise|mention|recommend|say|state)\b",
        r"\b(?:crawlers?|copilots?|chatbots|bots|ai agents?|assistants|llms|ais|language models|(?:my"
        r"|user's) assistant)\b"
        r"[^.!?]{0,40}\b(?:shall|must|should|are to|is to|will always)\b",
        r"\b(?:is|are) to be (?:\w+ly )?(?:sent|forwarded|pasted|deleted|paid|uploaded|shared|executed|ignored"
        r"|approved"
        r"|disclosed|revealed|skipped|transferred|copied|obeyed|hidden|withheld)\b",
        rf"\b{_AI} (?:\w+ ){{0,3}}?{_MODAL} {_ADVERB}(?:not )?(?:{_DANGER}|rate|send|post|share|forward|recommend"
        rf"|ignore|trust|hide"
        r"|deny|claim|refuse|forget|report)\b",
        rf"\b{_WISH} (?:that )?{_AI} (?:to |should |must |will )?(?:not )?(?:to )?{_ADVERB}(?:{_DANGER}|rate)\b",
        rf"{_START}(?:always|never|do not|don't|remember to|make sure|be sure to|ensure|{_AI} (?:must|shall|will"
        rf"|have to|are to)) "
        rf"(?:to |that you |you )?{_ADVERB}{_IMPERATIVE}\b",
        rf"{_START}(?:do not |don't )?(?!(?:remember|note|forget|make|do|be|let|never)\b){_IMPERATIVE} (?:all|any"
        rf"|every|each|the"
        rf"|this|that|these|those|my|your|their|its|his|her|our|a|an|me|it|them|us|him|everything|no|in|with|to|only"
        rf"|as|like|and"
        rf"|without|directly|two|{LINK})\b",
        rf"\b(?:remember|note|memori[sz]e|keep in mind)(?: that)? {_AI} (?:\w+ )?(?:can|may|must|should|shall|will"
        rf"|are|is|have|has)\b",
        r"\btreat (?:every|all|any|each|my|the user's)\b[^.!?]{0,60}\bas\b",
    ),
}
